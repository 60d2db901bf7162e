select provider_batch_id, shard_id, state, state_reason, token, account, adapter, model, requests, prompt_tokens,
    adopted, raw_status, requests_done, requests_answered, requests_total, usage, input_ref, provider_id, result_refs,
    intent_at, creating_at, submitted_at, ended_at, collected_at, window_ends_at, results_until
from nightmill.provider_batch
where shard_id = any(%(shard_ids)s)
order by provider_batch_id
