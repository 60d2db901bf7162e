-- The batches whose rows and deletions this one does not replace.
select coalesce(array_agg(batch.batch_id), array[]::bigint[])
from nightmill.batch
join nightmill.batch as mine on mine.batch_id = %(batch_id)s
where batch.view_name = mine.view_name and batch.state = 'PUBLISHED'
    and (coalesce(batch.data_interval_end, batch.frozen_at), batch.frozen_at)
        > (coalesce(mine.data_interval_end, mine.frozen_at), mine.frozen_at)
