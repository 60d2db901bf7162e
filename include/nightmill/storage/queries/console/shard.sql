select shard_id, shard.batch_id, first_ordinal, last_ordinal, items, shard.prompt_tokens, shard.state, lease,
    wake_at, hold_until, shard.state_reason, settled_at, failed_at
from nightmill.shard
join nightmill.batch on batch.batch_id = shard.batch_id
where shard_id = %(shard_id)s and dag_id = %(dag_id)s
