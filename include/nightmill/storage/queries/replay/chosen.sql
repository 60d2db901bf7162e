select letter.ended_as, letter.class, letter.code, count(*) as items
from pg_temp.sent_again
left join nightmill.dead_letter as letter on letter.batch_id = %(parent_id)s and letter.ordinal = sent_again.ordinal
group by letter.ended_as, letter.class, letter.code
order by items desc, letter.class, letter.code
