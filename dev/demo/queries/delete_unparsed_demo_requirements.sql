delete from demo.parsed_requirement as held
where not exists (
    select from arriving_requirement as arriving where arriving.source_id = held.source_id and arriving.parsed
);
