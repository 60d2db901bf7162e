with reports as materialized (
    select * from nightmill.provider_batch_usage where batch_id = %(batch_id)s
), told as (
    select * from reports where is_reported
), attempted as (
    select count(*) as requests, coalesce(sum(prompt_tokens), 0) as prompt,
        coalesce(sum(output_tokens), 0) as completion, coalesce(sum(cache_read_tokens), 0) as cached,
        coalesce(sum(cache_write_tokens), 0) as cache_written, coalesce(sum(reasoning_tokens), 0) as reasoning,
        count(*) filter (where odd_usage is not null) as odd
    from nightmill.attempt
    where batch_id = %(batch_id)s
), guessed as (
    select coalesce(sum(item.tokens), 0) as prompt, count(*) as requests
    from nightmill.attempt
    join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = attempt.ordinal
    left join told on told.provider_batch_id = attempt.provider_batch_id
    where attempt.batch_id = %(batch_id)s and attempt.prompt_tokens is null and attempt.sent_upstream
        and told.provider_batch_id is null
), unattributed as (
    select coalesce(sum(unattributed_prompt_tokens), 0) as prompt,
        coalesce(sum(unattributed_output_tokens), 0) as completion,
        coalesce(sum(unattributed_cache_read_tokens), 0) as cached,
        coalesce(sum(unattributed_cache_write_tokens), 0) as cache_written,
        coalesce(sum(unattributed_reasoning_tokens), 0) as reasoning
    from told
)
select attempted.requests, (attempted.prompt + guessed.prompt + unattributed.prompt)::bigint as prompt,
    (attempted.completion + unattributed.completion)::bigint as completion,
    (attempted.cached + unattributed.cached)::bigint as cached, guessed.requests as estimated,
    (attempted.cache_written + unattributed.cache_written)::bigint as cache_written,
    (attempted.reasoning + unattributed.reasoning)::bigint as reasoning, attempted.odd,
    (select count(*) from reports where is_odd) as odd_reports
from attempted, guessed, unattributed
