insert into nightmill.reuse_usage (batch_id, answers, prompt_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, reasoning_tokens, estimated)
select %(batch_id)s, count(*), sum(prompt_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens),
    sum(reasoning_tokens), count(*) filter (where estimated)
from pg_temp.reusable
where ordinal between %(first)s and %(last)s
having count(*) > 0
