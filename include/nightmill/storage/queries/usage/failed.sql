select class as kind, count(*) as requests, coalesce(sum(prompt_tokens), 0)::bigint as prompt,
    coalesce(sum(output_tokens), 0)::bigint as completion, coalesce(sum(cache_read_tokens), 0)::bigint as cached,
    0::bigint as estimated, coalesce(sum(cache_write_tokens), 0)::bigint as cache_written,
    coalesce(sum(reasoning_tokens), 0)::bigint as reasoning
from nightmill.attempt
where batch_id = %(batch_id)s and class is not null
group by class
union all
select 'unattributed', 0, coalesce(sum(unattributed_prompt_tokens), 0)::bigint,
    coalesce(sum(unattributed_output_tokens), 0)::bigint, coalesce(sum(unattributed_cache_read_tokens), 0)::bigint, 0,
    coalesce(sum(unattributed_cache_write_tokens), 0)::bigint,
    coalesce(sum(unattributed_reasoning_tokens), 0)::bigint
from nightmill.provider_batch_usage
where batch_id = %(batch_id)s and is_reported
having sum(abs(unattributed_prompt_tokens) + abs(unattributed_output_tokens)) > 0
order by kind
