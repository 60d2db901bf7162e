insert into pg_temp.arrived (ordinal, class, code, message, retryable, notes, citations)
select item.ordinal, %(class)s, %(code)s, %(message)s, true, '{}', '[]'
from nightmill.item
left join nightmill.attempt on attempt.batch_id = item.batch_id and attempt.ordinal = item.ordinal
    and attempt.provider_batch_id = %(provider_batch_id)s
where item.batch_id = %(batch_id)s and %(ordinals)s::int8multirange @> item.ordinal and attempt.ordinal is null
