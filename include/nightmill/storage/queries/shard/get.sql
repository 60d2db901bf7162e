select shard_id, batch_id, first_ordinal, last_ordinal, items, prompt_tokens, state, lease, wake_at, hold_until
from nightmill.shard
where shard_id = %(shard_id)s
