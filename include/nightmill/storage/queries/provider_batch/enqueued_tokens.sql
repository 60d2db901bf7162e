-- A cancelled batch holds its tokens until maintenance has stopped it at the provider, at the longest until the
-- window of what it sent has passed.
select coalesce(sum(provider_batch.prompt_tokens), 0)
from nightmill.provider_batch
join nightmill.batch on batch.batch_id = provider_batch.batch_id and (batch.ended_at is null
    or (batch.state = 'CANCELLED' and provider_batch.state <> 'INTENT'
        and coalesce(provider_batch.window_ends_at > clock_timestamp(), true)))
where account = %(account)s and model = %(model)s and provider_batch.state not in ('COLLECTED', 'ABANDONED', 'ENDED')
