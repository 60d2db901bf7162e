select coalesce(sum(provider_batch.prompt_tokens), 0)
from nightmill.provider_batch
join nightmill.batch on batch.batch_id = provider_batch.batch_id and batch.ended_at is null
where account = %(account)s and model = %(model)s and provider_batch.state not in ('COLLECTED', 'ABANDONED', 'ENDED')
