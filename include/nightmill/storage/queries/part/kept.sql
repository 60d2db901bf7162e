select part_id
from unnest(%(part_ids)s::int8[]) as part (part_id)
join pg_inherits on inhparent = to_regclass('nightmill.' || quote_ident(%(parent)s))
    and inhrelid = to_regclass('nightmill.' || quote_ident(nightmill.partition_name(%(parent)s, part_id)))
where not inhdetachpending
