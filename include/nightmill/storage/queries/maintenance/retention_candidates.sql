-- Ended batches that are not retired, with what speaks for keeping them. `published_rank` is that of the newest
-- publication that lists the batch, among those of its view that can be rolled back to; null = none does.
select batch.batch_id, batch.job, batch.view_name, batch.contract_id, batch.ended_at,
    ranked.published_rank,
    exists (
        select from nightmill.published
        join nightmill.publication_part using (publish_seq)
        where publication_part.batch_id = batch.batch_id
    ) as shown,
    exists (
        select from nightmill.provider_batch
        where provider_batch.batch_id = batch.batch_id and provider_batch.state not in ('COLLECTED', 'ABANDONED')
    ) as in_flight,
    exists (
        select from nightmill.batch as child
        where (child.payload_batch_id = batch.batch_id or child.parent_batch_id = batch.batch_id)
            and child.batch_id <> batch.batch_id and child.retired_at is null
    ) as needed_by_child,
    coalesce(batch.batch_id = max(batch.batch_id) filter (where batch.state not in ('CANCELLED', 'ESTIMATED'))
        over (partition by batch.job), false) as newest_of_job
from nightmill.batch
left join (
    select listed.batch_id, min(target.rank) as published_rank
    from (
        select publish_seq, row_number() over (partition by view_name order by publish_seq desc) as rank
        from nightmill.publication
        where kind in ('publish', 'rollback')
    ) as target
    join nightmill.publication_part as listed using (publish_seq)
    group by listed.batch_id
) as ranked on ranked.batch_id = batch.batch_id
where batch.ended_at is not null and batch.retired_at is null
order by batch.batch_id
