select provider_batch_id, shard_id, state, state_reason, token, account, model, requests, prompt_tokens, adopted,
    raw_status, counts, usage, input_file_id, provider_id, output_file_id, error_file_id, intent_at, uploaded_at,
    submitted_at, ended_at, collected_at
from nightmill.provider_batch
where shard_id = any(%(shard_ids)s)
order by provider_batch_id
