insert into nightmill.batch (job, view_name, dag_id, run_id, incarnation, contract_id, dry_run, params, note,
    requested_by, data_interval_start, data_interval_end, max_tries)
select %(job)s, %(view_name)s, %(dag_id)s, %(run_id)s,
    1 + coalesce((select max(incarnation) from nightmill.batch where dag_id = %(dag_id)s and run_id = %(run_id)s), 0),
    %(contract_id)s, %(dry_run)s, %(params)s, %(note)s, %(requested_by)s, %(data_interval_start)s,
    %(data_interval_end)s, %(max_tries)s
returning batch_id, job, view_name, dag_id, run_id, incarnation, state, state_reason, blocked_from, blocked_by, generation,
    contract_id, payload_batch_id, dry_run, params, max_tries, data_interval_start, data_interval_end, item_count,
    prompt_tokens, estimate, counts, created_at, frozen_at, ended_at
