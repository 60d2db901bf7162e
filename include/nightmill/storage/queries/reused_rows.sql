insert into {rows} (batch_id, ordinal, source_id, source_version, tenant, domain, result_id, reused, model,
    prompt_version, answered_at{names})
select %(batch_id)s, item.ordinal, item.source_id, item.source_version, item.tenant, item.domain, result.result_id,
    true, result.model, result.prompt_version, result.answered_at{typed}
from pg_temp.reusable
join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = reusable.ordinal
join nightmill.result on result.result_id = reusable.result_id,
    jsonb_to_record(result.answer) as typed ({record})
where reusable.ordinal between %(first)s and %(last)s
