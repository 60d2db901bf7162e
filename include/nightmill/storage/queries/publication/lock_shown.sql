select published.view_name, published.batch_id, published.publish_seq, published.published_at, published.gaps,
    published.mode, published.part_id,
    array[coalesce(batch.data_interval_end, batch.frozen_at), batch.frozen_at] as newness,
    batch.data_interval_start, batch.data_interval_end
from nightmill.published
join nightmill.batch on batch.batch_id = published.batch_id
where published.view_name = %(view_name)s
for update of published
