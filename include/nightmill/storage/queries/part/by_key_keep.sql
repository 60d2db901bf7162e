-- Shown rows of some pages whose ids this batch does not carry.
insert into {made} (part_id{names})
select %(part_id)s{kept}
from {rows} as shown
left join {rows} as carried on carried.part_id = %(batch_id)s and carried.source_id = shown.source_id
left join nightmill.item as deleted on deleted.batch_id = %(batch_id)s and deleted.source_id = shown.source_id
    and deleted.skip_reason = 'deleted'
where shown.part_id = %(shown_id)s and shown.ctid >= %(first)s::tid and shown.ctid < %(last)s::tid
    and shown.batch_id <> all (%(newer)s::bigint[])
    and carried.source_id is null and deleted.source_id is null
