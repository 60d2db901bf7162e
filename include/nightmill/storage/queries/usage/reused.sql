select count(*) as requests,
    coalesce(sum(coalesce(result.prompt_tokens, (
        select item.tokens from nightmill.item where item.batch_id = %(batch_id)s and item.ordinal = outcome.ordinal
    ))), 0)::bigint as prompt,
    coalesce(sum(result.output_tokens), 0)::bigint as completion,
    coalesce(sum(result.cache_read_tokens), 0)::bigint as cached,
    count(*) filter (where result.prompt_tokens is null) as estimated,
    coalesce(sum(result.cache_write_tokens), 0)::bigint as cache_written,
    coalesce(sum(result.reasoning_tokens), 0)::bigint as reasoning
from nightmill.outcome
join nightmill.result on result.result_id = outcome.result_id
where outcome.batch_id = %(batch_id)s and outcome.kind = 'reused'
