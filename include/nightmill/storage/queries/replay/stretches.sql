select array_agg(sent_again.ordinal order by sent_again.ordinal)
from nightmill.batch
join nightmill.payload_segment as segment on segment.batch_id = coalesce(batch.payload_batch_id, batch.batch_id)
join pg_temp.sent_again on sent_again.ordinal between segment.first_ordinal and segment.last_ordinal
where batch.batch_id = %(parent_id)s
group by segment.segment
order by segment.segment
