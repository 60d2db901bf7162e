-- Where a batch's rows lie: in its own part, or in the newest one that it was merged into.
select part_id
from (
    select %(batch_id)s::bigint as part_id, null::bigint as publish_seq
    union
    select part_id, publish_seq from nightmill.publication_part where batch_id = %(batch_id)s
) as told
where exists (
    select from pg_inherits
    where inhparent = to_regclass('nightmill.' || quote_ident(%(parent)s)) and not inhdetachpending
        and inhrelid = to_regclass('nightmill.' || quote_ident(nightmill.partition_name(%(parent)s, part_id)))
)
order by part_id = %(batch_id)s desc, publish_seq desc
limit 1
