select token, state, provider_id, batch_id
from nightmill.provider_batch
where token = any(%(tokens)s)
