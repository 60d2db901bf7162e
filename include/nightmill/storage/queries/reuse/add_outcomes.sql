insert into {outcomes} (batch_id, ordinal, kind, result_id)
select %(batch_id)s, ordinal, 'reused', result_id
from pg_temp.reusable
where ordinal between %(first)s and %(last)s
