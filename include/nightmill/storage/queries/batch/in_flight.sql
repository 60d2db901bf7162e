-- A cancelled batch counts while maintenance stops and collects what it had sent, but not for ever.
select provider_batch.batch_id, range_agg(provider_batch.ordinals) as carried
from nightmill.provider_batch
join nightmill.batch on batch.batch_id = provider_batch.batch_id and (batch.ended_at is null
    or (batch.state = 'CANCELLED' and batch.ended_at > clock_timestamp() - make_interval(secs => %(cancelled_wait_s)s)))
where provider_batch.job = %(job)s and provider_batch.batch_id <> %(batch_id)s
    and provider_batch.state not in ('COLLECTED', 'ABANDONED')
group by provider_batch.batch_id
