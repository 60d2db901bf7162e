with settled as (
    select bucket, count(*) as items from nightmill.item_bucket where batch_id = %(batch_id)s group by bucket
)
select bucket, items from settled
union all
select 'unsettled', coalesce(batch.item_count, 0) - coalesce((select sum(items)::bigint from settled), 0)
from nightmill.batch where batch_id = %(batch_id)s
