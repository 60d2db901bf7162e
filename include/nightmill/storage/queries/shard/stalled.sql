-- Shards that have nothing at the provider and have collected nothing for long: what they wait for does not come.
select shard.shard_id, shard.batch_id, shard.state_reason, progress.since
from nightmill.shard
join nightmill.batch on batch.batch_id = shard.batch_id and batch.state = 'RUNNING'
cross join lateral (
    select greatest(shard.created_at, max(one.collected_at)) as since,
        coalesce(bool_or(one.state not in ('COLLECTED', 'ABANDONED')), false) as live
    from nightmill.provider_batch as one
    where one.shard_id = shard.shard_id
) as progress
where shard.state = 'RETRY_WAIT' and not progress.live and progress.since < %(before)s
order by shard.shard_id
