select distinct provider_batch.shard_id, provider_batch.batch_id
from nightmill.provider_batch
join nightmill.batch on batch.batch_id = provider_batch.batch_id and batch.state = 'CANCELLED'
where provider_batch.state not in ('COLLECTED', 'ABANDONED')
    and (%(batch_id)s::int8 is null or provider_batch.batch_id = %(batch_id)s)
order by provider_batch.batch_id, provider_batch.shard_id
