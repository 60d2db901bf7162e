with chosen as (
    select item.ordinal, item.source_id, item.source_version, item.tenant, item.domain, result.result_id,
        result.answer, result.model, result.prompt_version, result.answered_at
    from pg_temp.reusable
    join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = reusable.ordinal
    join nightmill.result on result.result_id = reusable.result_id
    where reusable.ordinal between %(first)s and %(last)s
), settled as (
    insert into nightmill.outcome (batch_id, ordinal, kind, result_id)
    select %(batch_id)s, ordinal, 'reused', result_id
    from chosen
)
insert into {rows} (batch_id, ordinal, source_id, source_version, tenant, domain, result_id, reused, model,
    prompt_version, answered_at{names})
select %(batch_id)s, ordinal, source_id, source_version, tenant, domain, result_id, true, model, prompt_version,
    answered_at{typed}
from chosen, jsonb_to_record(chosen.answer) as typed ({record})
