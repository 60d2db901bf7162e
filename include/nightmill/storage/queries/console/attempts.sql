select class as failure_class, code, count(*) as requests,
    coalesce(sum(prompt_tokens), 0)::bigint as prompt,
    coalesce(sum(output_tokens), 0)::bigint as completion,
    coalesce(sum(cache_read_tokens), 0)::bigint as cached,
    coalesce(sum(cache_write_tokens), 0)::bigint as cache_written,
    coalesce(sum(reasoning_tokens), 0)::bigint as reasoning,
    count(*) filter (where prompt_tokens is null and sent_upstream and odd_usage is null) as unreported,
    count(*) filter (where odd_usage is not null) as odd
from nightmill.attempt
where batch_id = %(batch_id)s and ordinal between %(first)s and %(last)s
group by class, code
order by class nulls first, requests desc, code
