insert into {rows} (part_id, batch_id, ordinal, source_id, source_version, tenant, domain, result_id, reused, model,
    prompt_version, answered_at, citations, data_interval_start, data_interval_end{names})
select %(batch_id)s, %(batch_id)s, reusable.ordinal, shown.source_id, shown.source_version, shown.tenant, reusable.domain,
    shown.result_id, true, shown.model, shown.prompt_version, shown.answered_at, shown.citations,
    (select data_interval_start from nightmill.batch where batch_id = %(batch_id)s),
    (select data_interval_end from nightmill.batch where batch_id = %(batch_id)s){as_shown}
from pg_temp.reusable
join {all_rows} as shown on shown.part_id = %(shown_id)s and shown.result_id = reusable.result_id
where reusable.ordinal between %(first)s and %(last)s
