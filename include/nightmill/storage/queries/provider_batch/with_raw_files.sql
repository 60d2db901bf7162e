select provider_batch_id, token,
    array(select jsonb_object_keys(result_refs)) as kinds
from nightmill.provider_batch
where batch_id = %(batch_id)s and evidence_deleted_at is null and collected_at < %(before)s
order by provider_batch_id
