insert into nightmill.reuse_usage (batch_id, answers, prompt_tokens, completion_tokens, estimated)
select %(batch_id)s, count(*), sum(prompt_tokens), sum(completion_tokens), count(*) filter (where estimated)
from pg_temp.reusable
where ordinal between %(first)s and %(last)s
having count(*) > 0
