update nightmill.shard set lease = lease + 1, state = %(state)s, state_reason = %(reason)s, failed_at = null
where shard_id = %(shard_id)s and lease = %(lease)s
returning shard_id, batch_id, first_ordinal, last_ordinal, items, prompt_tokens, state, lease, wake_at, hold_until
