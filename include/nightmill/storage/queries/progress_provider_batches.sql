select state, raw_status, count(*) as batches, sum(requests)::bigint as requests,
    sum(coalesce((counts ->> 'completed')::bigint, 0) + coalesce((counts ->> 'failed')::bigint, 0))::bigint as answered
from nightmill.provider_batch
where batch_id = %(batch_id)s
group by state, raw_status
order by state, raw_status
