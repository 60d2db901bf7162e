insert into pg_temp.reusable (ordinal, domain, result_id, outdated)
select item.ordinal, item.domain, result.result_id, result.validators_hash <> %(validators_hash)s
from nightmill.item
join nightmill.result on result.key = item.key and result.effective
where item.batch_id = %(batch_id)s and item.ordinal = any(%(ordinals)s::int8[])
order by item.ordinal
