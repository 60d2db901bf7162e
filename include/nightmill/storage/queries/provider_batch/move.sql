update nightmill.provider_batch as one set
    state = %(to_state)s,
    state_reason = %(reason)s,
    input_file_id = coalesce(%(input_file_id)s, input_file_id),
    provider_id = coalesce(%(provider_id)s, provider_id),
    adopted = coalesce(%(adopted)s, adopted),
    raw_status = coalesce(%(raw_status)s, raw_status),
    output_file_id = coalesce(%(output_file_id)s, output_file_id),
    error_file_id = coalesce(%(error_file_id)s, error_file_id),
    counts = coalesce(%(counts)s, counts),
    usage = coalesce(%(usage)s, usage),
    problems = coalesce(%(problems)s, problems),
    refused = coalesce(%(refused)s, refused),
    suspects = coalesce(%(suspects)s, suspects),
    uploaded_at = case when %(to_state)s = 'UPLOADED' then clock_timestamp() else uploaded_at end,
    submitted_at = case when %(to_state)s = 'SUBMITTED' then clock_timestamp() else submitted_at end,
    ended_at = case when %(to_state)s = 'ENDED' then clock_timestamp() else ended_at end,
    collected_at = case when %(to_state)s = 'COLLECTED' then clock_timestamp() else collected_at end
where provider_batch_id = %(provider_batch_id)s and state = %(from_state)s
returning {columns}
