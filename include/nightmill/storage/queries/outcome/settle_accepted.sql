with stored as (
    insert into nightmill.result (result_id, key, job, tenant, source_id, source_version, content_hash, answer, notes,
        citations, validators_hash, contract_id, prompt_version, model, batch_id, provider_batch_id, uncached_tokens,
        output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, answered_at)
    overriding system value
    select arrived.result_id, item.key, %(job)s, item.tenant, item.source_id, item.source_version, item.content_hash,
        arrived.answer, coalesce(arrived.notes, array[]::text[]), coalesce(arrived.citations, '[]'),
        %(validators_hash)s, %(contract_id)s, %(prompt_version)s, coalesce(arrived.model, ''), %(batch_id)s,
        %(provider_batch_id)s, arrived.uncached_tokens, arrived.output_tokens, arrived.cache_read_tokens,
        arrived.cache_write_tokens, arrived.reasoning_tokens, statement_timestamp()
    from pg_temp.arrived
    join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = arrived.ordinal
        and item.ordinal between %(first)s and %(last)s
    where arrived.accepted
), settled as (
    insert into nightmill.outcome (batch_id, ordinal, kind, result_id)
    select %(batch_id)s, ordinal, 'accepted', result_id
    from pg_temp.arrived
    where accepted
)
insert into {rows} (part_id, batch_id, ordinal, source_id, source_version, tenant, domain, result_id, reused, model,
    prompt_version, answered_at, citations, data_interval_start, data_interval_end{names})
select %(batch_id)s, %(batch_id)s, item.ordinal, item.source_id, item.source_version, item.tenant, item.domain, arrived.result_id,
    false, coalesce(arrived.model, ''), %(prompt_version)s, statement_timestamp(), arrived.citations,
    (select data_interval_start from nightmill.batch where batch_id = %(batch_id)s),
    (select data_interval_end from nightmill.batch where batch_id = %(batch_id)s){typed}
from pg_temp.arrived
join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = arrived.ordinal
    and item.ordinal between %(first)s and %(last)s,
    jsonb_to_record(arrived.answer) as typed ({record})
where arrived.accepted
