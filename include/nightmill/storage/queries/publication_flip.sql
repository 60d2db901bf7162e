with flip as (
    insert into nightmill.publication (view_name, batch_id, kind, published_by, counts, gaps)
    values (%(view_name)s, %(batch_id)s, 'publish', %(published_by)s, %(counts)s, %(gaps)s)
    returning view_name, batch_id, publish_seq, published_at, gaps
)
insert into nightmill.published (view_name, batch_id, publish_seq, published_at, gaps)
select view_name, batch_id, publish_seq, published_at, gaps
from flip
on conflict (view_name) do update set
    batch_id = excluded.batch_id,
    publish_seq = excluded.publish_seq,
    published_at = excluded.published_at,
    gaps = excluded.gaps
