update nightmill.shard set
    state = %(to_state)s,
    state_reason = %(reason)s,
    unsettled = coalesce(%(unsettled)s, unsettled),
    wake_at = clock_timestamp() + make_interval(secs => %(wake_in_s)s),
    settled_at = case when %(settles)s then clock_timestamp() end
where shard_id = %(shard_id)s and lease = %(lease)s and state = %(from_state)s
returning shard_id, batch_id, first_ordinal, last_ordinal, items, prompt_tokens, state, lease, wake_at, hold_until
