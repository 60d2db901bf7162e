insert into pg_temp.reusable (ordinal, domain, result_id, outdated)
select item.ordinal, item.domain, result.result_id, result.validators_hash <> %(validators_hash)s
from nightmill.item
join nightmill.result on result.key = item.key and result.effective
left join nightmill.outcome on outcome.batch_id = %(batch_id)s and outcome.ordinal = item.ordinal
where item.batch_id = %(batch_id)s and item.skip_reason is null and outcome.ordinal is null
order by item.ordinal
