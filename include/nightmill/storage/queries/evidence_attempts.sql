select class as failure_class, code, count(*) as requests,
    coalesce(sum(prompt_tokens), 0)::bigint as prompt,
    coalesce(sum(completion_tokens), 0)::bigint as completion,
    coalesce(sum(cached_tokens), 0)::bigint as cached,
    count(*) filter (where prompt_tokens is null) as unreported
from nightmill.attempt
where batch_id = %(batch_id)s and ordinal between %(first)s and %(last)s
group by class, code
order by class nulls first, requests desc, code
