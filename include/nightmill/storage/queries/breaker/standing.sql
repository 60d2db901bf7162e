-- What keeps a batch from sending: its breakers, a status that nobody knows, and what it has at the provider.
select
    (select sum(items) from nightmill.shard where shard.batch_id = batch.batch_id)::bigint as to_send,
    failures.state, failures.since,
    open.cause, open.remedy,
    exists (
        select from nightmill.provider_batch
        where provider_batch.batch_id = batch.batch_id and provider_batch.state not in ('COLLECTED', 'ABANDONED')
    ) as in_flight,
    (
        select coalesce(raw_status, '?') from nightmill.provider_batch
        where provider_batch.batch_id = batch.batch_id and provider_batch.state not in ('COLLECTED', 'ABANDONED')
            and unknown_since is not null
        limit 1
    ) as unknown_status
from nightmill.batch
left join nightmill.breaker as failures on failures.batch_id = batch.batch_id and failures.kind = 'failures'
left join lateral (
    select cause, remedy
    from nightmill.breaker
    where breaker.batch_id = batch.batch_id and breaker.state = 'open'
    order by since
    limit 1
) as open on true
where batch.batch_id = %(batch_id)s
