-- Ids that this batch deletes, and those deleted before that it does not bring back.
insert into nightmill.deleted_key (part_id, source_id, batch_id)
select %(part_id)s, before.source_id, before.batch_id
from nightmill.deleted_key as before
left join {rows} as carried on carried.part_id = %(batch_id)s and carried.source_id = before.source_id
left join nightmill.item as again on again.batch_id = %(batch_id)s and again.source_id = before.source_id
    and again.skip_reason = 'deleted'
where before.part_id = %(shown_id)s
    and (before.batch_id = any (%(newer)s::bigint[]) or (carried.source_id is null and again.source_id is null))
union all
select %(part_id)s, gone.source_id, %(batch_id)s
from (
    select carried.source_id from {rows} as carried where carried.part_id = %(batch_id)s and {deleted} is true
    union
    select source_id from nightmill.item where batch_id = %(batch_id)s and skip_reason = 'deleted'
) as gone
left join {rows} as shown on shown.part_id = %(shown_id)s and shown.source_id = gone.source_id
    and shown.batch_id = any (%(newer)s::bigint[])
left join nightmill.deleted_key as before on before.part_id = %(shown_id)s and before.source_id = gone.source_id
    and before.batch_id = any (%(newer)s::bigint[])
where shown.source_id is null and before.source_id is null
