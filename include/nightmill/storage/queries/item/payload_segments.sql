select segment.first_ordinal, segment.last_ordinal, segment.object_path, segment.object_sha256, segment.raw_sha256
from nightmill.payload_segment as segment
join nightmill.batch on coalesce(batch.payload_batch_id, batch.batch_id) = segment.batch_id
where batch.batch_id = %(batch_id)s
order by segment.first_ordinal
