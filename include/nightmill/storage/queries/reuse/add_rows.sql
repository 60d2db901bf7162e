-- Tenant, id and version are part of the key, so the result's are the item's; the domain is not.
insert into {rows} (part_id, batch_id, ordinal, source_id, source_version, tenant, domain, result_id, reused, model,
    prompt_version, answered_at, citations, data_interval_start, data_interval_end{names})
select %(batch_id)s, %(batch_id)s, reusable.ordinal, result.source_id, result.source_version, result.tenant, reusable.domain,
    result.result_id, true, result.model, result.prompt_version, result.answered_at,
    nullif(result.citations, '[]'),
    (select data_interval_start from nightmill.batch where batch_id = %(batch_id)s),
    (select data_interval_end from nightmill.batch where batch_id = %(batch_id)s){typed}
from pg_temp.reusable
join nightmill.result on result.result_id = reusable.result_id
left join {all_rows} as shown on shown.part_id = %(shown_id)s and shown.result_id = reusable.result_id,
    jsonb_to_record(result.answer) as typed ({record})
where reusable.ordinal between %(first)s and %(last)s and shown.result_id is null
