insert into nightmill.published (view_name, batch_id, publish_seq, published_at, gaps, mode, part_id)
select view_name, %(shown_batch)s, publish_seq, published_at, gaps, %(mode)s, %(part_id)s
from nightmill.publication
where publish_seq = %(publish_seq)s
on conflict (view_name) do update set
    batch_id = excluded.batch_id,
    publish_seq = excluded.publish_seq,
    published_at = excluded.published_at,
    gaps = excluded.gaps,
    mode = excluded.mode,
    part_id = excluded.part_id
