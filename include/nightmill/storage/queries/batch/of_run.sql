select batch_id, job, view_name, dag_id, run_id, incarnation, state, state_reason, blocked_from, blocked_by, generation,
    contract_id, payload_batch_id, dry_run, params, max_tries, data_interval_start, data_interval_end, item_count,
    prompt_tokens, estimate, counts, created_at, frozen_at, ended_at
from nightmill.batch
where dag_id = %(dag_id)s and run_id = %(run_id)s
order by incarnation desc
limit 1
