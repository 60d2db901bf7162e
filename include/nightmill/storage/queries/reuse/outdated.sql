select reusable.ordinal, reusable.result_id, result.answer
from pg_temp.reusable
join nightmill.result on result.result_id = reusable.result_id
where reusable.outdated
order by reusable.ordinal
