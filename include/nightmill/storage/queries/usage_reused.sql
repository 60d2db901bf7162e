select count(*) as requests,
    coalesce(sum(coalesce(result.prompt_tokens, (
        select item.tokens from nightmill.item where item.batch_id = %(batch_id)s and item.ordinal = outcome.ordinal
    ))), 0)::bigint as prompt,
    coalesce(sum(result.completion_tokens), 0)::bigint as completion,
    0::bigint as cached,
    count(*) filter (where result.prompt_tokens is null) as estimated
from nightmill.outcome
join nightmill.result on result.result_id = outcome.result_id
where outcome.batch_id = %(batch_id)s and outcome.kind = 'reused'
