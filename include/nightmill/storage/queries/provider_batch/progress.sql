select state, raw_status, count(*) as batches, sum(requests)::bigint as requests,
    sum(coalesce(requests_done, 0))::bigint as answered,
    sum(coalesce(requests_done - coalesce(requests_answered, 0), 0))::bigint as failed,
    (array_agg(state_reason order by provider_batch_id desc))[1] as reason
from nightmill.provider_batch
where batch_id = %(batch_id)s
group by state, raw_status
order by state, max(provider_batch_id)
