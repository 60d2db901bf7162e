insert into {rows} (part_id, batch_id, ordinal, source_id, source_version, tenant, domain, result_id, reused, model,
    prompt_version, answered_at, citations, data_interval_start, data_interval_end{names})
select %(batch_id)s, %(batch_id)s, carried.ordinal, carried.source_id, carried.source_version, carried.tenant, carried.domain,
    carried.result_id, true, carried.model, carried.prompt_version, carried.answered_at, carried.citations,
    (select data_interval_start from nightmill.batch where batch_id = %(batch_id)s),
    (select data_interval_end from nightmill.batch where batch_id = %(batch_id)s){typed}
from {parent_rows} as carried
left join pg_temp.sent_again on sent_again.ordinal = carried.ordinal
where carried.part_id = %(parent_part)s and carried.batch_id = %(parent_id)s and sent_again.ordinal is null
    and carried.gap_reason is null
order by carried.ordinal
