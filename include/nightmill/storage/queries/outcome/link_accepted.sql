with linked as materialized (
    select item.ordinal, item.source_id, item.source_version, item.tenant, item.domain, result.result_id,
        result.answer, result.model, result.prompt_version, result.answered_at, result.citations
    from pg_temp.arrived
    join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = arrived.ordinal
        and item.ordinal between %(first)s and %(last)s
    join nightmill.result on result.key = item.key and result.effective
    where arrived.accepted
), settled as (
    insert into nightmill.outcome (batch_id, ordinal, kind, result_id)
    select %(batch_id)s, ordinal, 'accepted', result_id
    from linked
)
insert into {rows} (part_id, batch_id, ordinal, source_id, source_version, tenant, domain, result_id, reused, model,
    prompt_version, answered_at, citations, data_interval_start, data_interval_end{names})
select %(batch_id)s, %(batch_id)s, ordinal, source_id, source_version, tenant, domain, result_id, false, model, prompt_version,
    answered_at, nullif(citations, '[]'),
    (select data_interval_start from nightmill.batch where batch_id = %(batch_id)s),
    (select data_interval_end from nightmill.batch where batch_id = %(batch_id)s){typed}
from linked, jsonb_to_record(linked.answer) as typed ({record})
