select watched.shard_id,
    shard.shard_id is null or batch.ended_at is not null or shard.state in ('SETTLED', 'CANCELLED')
        or coalesce(shard.wake_at <= clock_timestamp(), true) as due,
    provider_batch.provider_id,
    provider_batch.submitted_at
from unnest(%(shard_ids)s::int8[]) as watched (shard_id)
left join nightmill.shard on shard.shard_id = watched.shard_id
left join nightmill.batch on batch.batch_id = shard.batch_id
left join nightmill.provider_batch on provider_batch.shard_id = watched.shard_id
    and provider_batch.state = 'SUBMITTED' and provider_batch.unknown_since is null -- else its shard polls it
    and coalesce(shard.hold_until <= clock_timestamp(), true)
