insert into pg_temp.reusable (ordinal, domain, result_id, outdated, prompt_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, reasoning_tokens, estimated)
select item.ordinal, item.domain, result.result_id, result.validators_hash <> %(validators_hash)s,
    coalesce(result.prompt_tokens, item.tokens), coalesce(result.output_tokens, 0), coalesce(result.cache_read_tokens, 0),
    coalesce(result.cache_write_tokens, 0), coalesce(result.reasoning_tokens, 0), result.prompt_tokens is null
from nightmill.item
join nightmill.result on result.key = item.key and result.effective
left join nightmill.outcome on outcome.batch_id = %(batch_id)s and outcome.ordinal = item.ordinal
where item.batch_id = %(batch_id)s and item.skip_reason is null and outcome.ordinal is null
order by item.ordinal
