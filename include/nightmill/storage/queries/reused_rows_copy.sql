insert into {rows} (batch_id, ordinal, source_id, source_version, tenant, domain, result_id, reused, model,
    prompt_version, answered_at, citations{names})
select %(batch_id)s, reusable.ordinal, shown.source_id, shown.source_version, shown.tenant, reusable.domain,
    shown.result_id, true, shown.model, shown.prompt_version, shown.answered_at, shown.citations{as_shown}
from pg_temp.reusable
join {all_rows} as shown on shown.batch_id = %(shown_id)s and shown.result_id = reusable.result_id
where reusable.ordinal between %(first)s and %(last)s
