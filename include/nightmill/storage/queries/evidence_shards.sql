select shard_id, batch_id, first_ordinal, last_ordinal, items, prompt_tokens, state, state_reason, wake_at, settled_at
from nightmill.shard
where batch_id = %(batch_id)s
order by first_ordinal
