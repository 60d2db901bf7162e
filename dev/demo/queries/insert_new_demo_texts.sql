insert into demo.distribution_text (source_id, source_version, distribution, version, kind, file_name, body)
select source_id, source_version, distribution, version, kind, file_name, body
from arriving_text as arriving
where not exists (select from demo.distribution_text as held where held.source_id = arriving.source_id);
