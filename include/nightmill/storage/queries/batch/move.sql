update nightmill.batch set
    state = %(to_state)s,
    state_reason = %(reason)s,
    blocked_from = %(blocked_from)s,
    blocked_by = %(blocked_by)s,
    ended_at = case when %(ends)s then clock_timestamp() end
where batch_id = %(batch_id)s and state = %(from_state)s and generation = %(generation)s
returning batch_id, job, view_name, dag_id, run_id, incarnation, state, state_reason, blocked_from, blocked_by, generation,
    contract_id, payload_batch_id, dry_run, params, max_tries, data_interval_start, data_interval_end, item_count,
    prompt_tokens, estimate, counts, created_at, frozen_at, ended_at
