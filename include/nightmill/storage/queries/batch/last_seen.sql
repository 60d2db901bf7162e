-- When anything was last heard of each open batch. A shard that waits says until when, so that lies ahead,
-- and so does a question to a person. Of a BLOCKED batch the shards' own wake-ups tell nothing: they look every
-- few minutes whether a person has come. A preview is done: retention cancels it.
select batch.batch_id, batch.job, batch.contract_id,
    greatest(
        batch.created_at,
        (select max(made_at) from nightmill.transition
            where transition.batch_id = batch.batch_id and (batch.state <> 'BLOCKED' or entity <> 'shard')),
        (select max(wake_at) from nightmill.shard
            where shard.batch_id = batch.batch_id and batch.state <> 'BLOCKED'),
        (select max((details ->> 'until')::timestamptz) from nightmill.gate_verdict
            where gate_verdict.batch_id = batch.batch_id and gate = 'approve')
    ) as last_seen
from nightmill.batch
where ended_at is null and state <> 'STAGED'
order by batch_id
