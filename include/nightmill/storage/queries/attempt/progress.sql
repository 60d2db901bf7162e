select class as kind, count(*) as attempts, count(*) filter (where attempt_no > 1) as again, max(attempt_no) as rounds
from nightmill.attempt
where batch_id = %(batch_id)s
group by class
order by class nulls first
