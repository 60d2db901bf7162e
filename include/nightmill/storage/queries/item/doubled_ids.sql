select source_id from {items} group by source_id having count(*) > 1 order by source_id collate "C" limit 3
