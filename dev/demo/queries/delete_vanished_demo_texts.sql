delete from demo.distribution_text as held
where not exists (select from arriving_text as arriving where arriving.source_id = held.source_id);
