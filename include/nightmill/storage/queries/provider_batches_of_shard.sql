select provider_batch_id, batch_id, shard_id, state, token, account, ordinals, requests, prompt_tokens, input_file_id,
    provider_id, raw_status, output_file_id, error_file_id, intent_at, uploaded_at, submitted_at, ended_at,
    refused, counts, suspects, file_bytes, model, taken_at, over_at, unknown_since, stop_asked_at,
    provider_made_at
from nightmill.provider_batch
where shard_id = %(shard_id)s
order by provider_batch_id
