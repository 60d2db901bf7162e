select state, count(*) as shards, sum(items)::bigint as items,
    sum(case when state in ('SETTLED', 'CANCELLED') then 0 else coalesce(unsettled, items) end)::bigint as unsettled,
    count(failed_at) as failed,
    min(wake_at) filter (where state in ('RUNNING', 'RETRY_WAIT') and failed_at is null) as wake_at
from nightmill.shard
where batch_id = %(batch_id)s
group by state
order by state
