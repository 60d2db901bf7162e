select shard_id, batch_id, first_ordinal, last_ordinal, items, prompt_tokens, state, lease, wake_at, hold_until,
    state_reason, settled_at, failed_at
from nightmill.shard
where batch_id = %(batch_id)s
order by first_ordinal
