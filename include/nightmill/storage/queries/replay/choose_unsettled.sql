insert into pg_temp.sent_again (ordinal)
select item.ordinal
from nightmill.item
left join nightmill.outcome on outcome.batch_id = %(parent_id)s and outcome.ordinal = item.ordinal
where item.batch_id = %(parent_id)s and coalesce(outcome.kind, 'cancelled') = 'cancelled'
