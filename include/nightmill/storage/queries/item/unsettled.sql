select item.ordinal, item.tokens
from nightmill.item
left join nightmill.outcome on outcome.batch_id = item.batch_id and outcome.ordinal = item.ordinal
where item.batch_id = %(batch_id)s and outcome.ordinal is null
order by item.ordinal
