delete from demo.declared_licence as held
where not exists (
    select from arriving_text as arriving
    where arriving.source_id = held.source_id and cardinality(arriving.spdx_ids) > 0
);
