with accepted as materialized (
    select nextval('nightmill.result_result_id_seq') as result_id, clock_timestamp() as answered_at, item.ordinal, item.key,
        item.source_id, item.source_version, item.tenant, item.domain, item.content_hash, arrived.answer,
        arrived.notes, arrived.citations, coalesce(arrived.model, '') as model, arrived.prompt_tokens,
        arrived.completion_tokens
    from pg_temp.arrived
    join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = arrived.ordinal
        and item.ordinal between %(first)s and %(last)s
    where arrived.class is null
), stored as (
    insert into nightmill.result (result_id, key, revision, job, tenant, source_id, source_version, content_hash,
        answer, notes, citations, validators_hash, contract_id, prompt_version, model, batch_id, provider_batch_id,
        prompt_tokens, completion_tokens, answered_at)
    overriding system value
    select result_id, key,
        1 + coalesce((select max(earlier.revision) from nightmill.result as earlier where earlier.key = accepted.key
            and not earlier.effective), 0),
        %(job)s, tenant, source_id, source_version, content_hash, answer, notes, citations,
        %(validators_hash)s, %(contract_id)s, %(prompt_version)s, model, %(batch_id)s, %(provider_batch_id)s,
        prompt_tokens, completion_tokens, answered_at
    from accepted
), settled as (
    insert into nightmill.outcome (batch_id, ordinal, kind, result_id)
    select %(batch_id)s, ordinal, 'accepted', result_id
    from accepted
)
insert into {rows} (batch_id, ordinal, source_id, source_version, tenant, domain, result_id, reused, model,
    prompt_version, answered_at{names})
select %(batch_id)s, ordinal, source_id, source_version, tenant, domain, result_id, false, model,
    %(prompt_version)s, answered_at{typed}
from accepted, jsonb_to_record(accepted.answer) as typed ({record})
