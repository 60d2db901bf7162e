-- This batch's rows of some pages, unless what is shown, or was deleted, is newer.
insert into {made} (part_id{names})
select %(part_id)s{taken}
from {rows} as carried
left join {rows} as shown on shown.part_id = %(shown_id)s and shown.source_id = carried.source_id
    and shown.batch_id = any (%(newer)s::bigint[])
    and (shown.gap_reason is null or carried.gap_reason is not null)
left join nightmill.deleted_key on deleted_key.part_id = %(shown_id)s and deleted_key.source_id = carried.source_id
    and deleted_key.batch_id = any (%(newer)s::bigint[])
where carried.part_id = %(batch_id)s and carried.ctid >= %(first)s::tid and carried.ctid < %(last)s::tid
    and shown.source_id is null and deleted_key.source_id is null and {deleted} is not true
