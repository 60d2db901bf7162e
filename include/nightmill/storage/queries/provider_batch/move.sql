update nightmill.provider_batch as one set
    state = %(to_state)s,
    state_reason = %(reason)s,
    input_ref = coalesce(%(input_ref)s, input_ref),
    provider_id = coalesce(%(provider_id)s, provider_id),
    adopted = coalesce(%(adopted)s, adopted),
    raw_status = coalesce(%(raw_status)s, raw_status),
    result_refs = coalesce(%(result_refs)s, result_refs),
    window_ends_at = coalesce(%(window_ends_at)s, window_ends_at),
    results_until = coalesce(%(results_until)s, results_until),
    refused = coalesce(%(refused)s, refused),
    suspects = coalesce(%(suspects)s, suspects),
    creating_at = case when %(to_state)s = 'CREATING' then clock_timestamp() else creating_at end,
    submitted_at = case when %(to_state)s = 'SUBMITTED' then clock_timestamp() else submitted_at end,
    ended_at = case when %(to_state)s = 'ENDED' then clock_timestamp() else ended_at end,
    collected_at = case when %(to_state)s = 'COLLECTED' then clock_timestamp() else collected_at end
where provider_batch_id = %(provider_batch_id)s and state = %(from_state)s
returning {columns}
