insert into pg_temp.sent_again (ordinal)
select letter.ordinal
from nightmill.dead_letter as letter
join nightmill.outcome on outcome.batch_id = %(parent_id)s and outcome.ordinal = letter.ordinal
    and outcome.kind in ('dead_lettered', 'in_review')
join nightmill.item on item.batch_id = %(parent_id)s and item.ordinal = letter.ordinal
where letter.batch_id = %(parent_id)s and {matches}
