-- The live provider batches of open batches, with when each entered its state.
select provider_batch_id, batch_id, shard_id, state, provider_id, raw_status, status, stopped, window_ends_at,
    case state when 'INTENT' then intent_at when 'CREATING' then creating_at when 'SUBMITTED' then submitted_at
        else ended_at end as since,
    (select contract_id from nightmill.batch where batch.batch_id = provider_batch.batch_id) as contract_id
from nightmill.provider_batch
where state not in ('COLLECTED', 'ABANDONED')
    and exists (select from nightmill.batch where batch.batch_id = provider_batch.batch_id and batch.ended_at is null)
order by provider_batch_id
