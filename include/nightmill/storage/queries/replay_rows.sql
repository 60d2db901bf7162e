insert into {rows} (batch_id, ordinal, source_id, source_version, tenant, domain, result_id, reused, model,
    prompt_version, answered_at, citations{names})
select %(batch_id)s, carried.ordinal, carried.source_id, carried.source_version, carried.tenant, carried.domain,
    carried.result_id, true, carried.model, carried.prompt_version, carried.answered_at, carried.citations{typed}
from {parent_rows} as carried
left join pg_temp.sent_again on sent_again.ordinal = carried.ordinal
where carried.batch_id = %(parent_id)s and sent_again.ordinal is null
order by carried.ordinal
