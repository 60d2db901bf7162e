insert into demo.requirement_line (source_id, distribution, line)
select source_id, distribution, line
from arriving_requirement as arriving
where not exists (select from demo.requirement_line as held where held.source_id = arriving.source_id);
