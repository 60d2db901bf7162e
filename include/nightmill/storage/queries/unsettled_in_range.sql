select item.ordinal, item.tokens
from nightmill.item
left join nightmill.outcome on outcome.batch_id = %(batch_id)s and outcome.ordinal = item.ordinal
where item.batch_id = %(batch_id)s and item.ordinal between %(first)s and %(last)s and outcome.ordinal is null
order by item.ordinal
