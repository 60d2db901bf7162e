insert into nightmill.result (key, revision, job, tenant, source_id, source_version, content_hash, answer, notes,
    citations, validators_hash, contract_id, prompt_version, model, batch_id, provider_batch_id, uncached_tokens,
    output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens)
select item.key,
    1 + coalesce((select max(earlier.revision) from nightmill.result as earlier where earlier.key = item.key
        and not earlier.effective), 0),
    %(job)s, item.tenant, item.source_id, item.source_version, item.content_hash, arrived.answer,
    coalesce(arrived.notes, array[]::text[]), coalesce(arrived.citations, '[]'), %(validators_hash)s, %(contract_id)s,
    %(prompt_version)s, coalesce(arrived.model, ''), %(batch_id)s, %(provider_batch_id)s, arrived.uncached_tokens,
    arrived.output_tokens, arrived.cache_read_tokens, arrived.cache_write_tokens, arrived.reasoning_tokens
from pg_temp.arrived
join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = arrived.ordinal
    and item.ordinal between %(first)s and %(last)s
where arrived.accepted
order by item.key
on conflict (key) where (effective) do nothing
