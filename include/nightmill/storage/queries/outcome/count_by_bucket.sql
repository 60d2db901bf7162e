-- A retired batch has no partitions any more: what was reconciled counts.
with settled as (
    select bucket, count(*) as items from nightmill.item_bucket where batch_id = %(batch_id)s group by bucket
)
select bucket, items from settled
union all
select 'unsettled', coalesce(batch.item_count, 0) - coalesce((select sum(items)::bigint from settled), 0)
from nightmill.batch where batch_id = %(batch_id)s and retired_at is null
union all
select kept.bucket, kept.items::bigint
from nightmill.batch, jsonb_each_text(batch.counts) as kept (bucket, items)
where batch_id = %(batch_id)s and retired_at is not null
