create or replace view {view} as
select source_id, source_version, tenant, domain, batch_id, result_id, reused, model, prompt_version,
    answered_at{names}
from {rows}
where batch_id = (select published.batch_id from nightmill.published where published.view_name = {name});

grant select on {view} to nightmill_reader, nightmill_writer;
