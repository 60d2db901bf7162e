-- Shards of running batches that should have been woken long ago.
select shard.shard_id, shard.batch_id, shard.wake_at
from nightmill.shard
join nightmill.batch on batch.batch_id = shard.batch_id and batch.state = 'RUNNING'
where shard.state in ('RUNNING', 'RETRY_WAIT') and shard.wake_at < %(before)s
order by shard.shard_id
