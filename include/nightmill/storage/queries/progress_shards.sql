select state, count(*) as shards, sum(items)::bigint as items
from nightmill.shard
where batch_id = %(batch_id)s
group by state
order by state
