-- Requests that were sent since a moment and have settled, by what they failed with; null = accepted. Left out is what
-- was never executed, was lost, or failed for want of capacity. Only asked while few have settled.
select class, code, count(*)
from nightmill.attempt
where batch_id = %(batch_id)s and sent_upstream and class is distinct from 'capacity' and code is distinct from 'lost_line'
    and provider_batch_id in (
        select provider_batch_id from nightmill.provider_batch
        where provider_batch.batch_id = %(batch_id)s and provider_batch_id <> %(but)s
            and (%(since)s::timestamptz is null or intent_at > %(since)s)
    )
group by class, code
