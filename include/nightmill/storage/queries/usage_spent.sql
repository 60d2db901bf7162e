select count(*) as requests,
    coalesce(sum(coalesce(attempt.prompt_tokens, item.tokens)), 0)::bigint as prompt,
    coalesce(sum(attempt.completion_tokens), 0)::bigint as completion,
    coalesce(sum(attempt.cached_tokens), 0)::bigint as cached,
    count(*) filter (where attempt.prompt_tokens is null) as estimated
from nightmill.attempt
join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = attempt.ordinal
where attempt.batch_id = %(batch_id)s
