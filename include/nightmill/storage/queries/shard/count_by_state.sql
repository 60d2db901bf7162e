select state, count(*) from nightmill.shard where batch_id = %(batch_id)s group by state order by state
