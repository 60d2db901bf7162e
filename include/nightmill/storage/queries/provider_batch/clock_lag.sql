-- How far the provider's clock is behind ours, by the batches that it made for an account of late; null = not known.
-- One that was adopted was made before it was known here.
select min(provider_made_at - submitted_at)
from (
    select provider_made_at, submitted_at
    from nightmill.provider_batch
    where account = %(account)s and not adopted and provider_made_at is not null and submitted_at is not null
    order by provider_batch_id desc
    limit 20
) as made
