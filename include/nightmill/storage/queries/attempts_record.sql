insert into nightmill.attempt (batch_id, ordinal, provider_batch_id, class, code, sent_upstream, prompt_tokens,
    completion_tokens, cached_tokens, model, finish_reason)
select %(batch_id)s, ordinal, %(provider_batch_id)s, class, code, true, prompt_tokens, completion_tokens,
    cached_tokens, model, finish_reason
from pg_temp.arrived
