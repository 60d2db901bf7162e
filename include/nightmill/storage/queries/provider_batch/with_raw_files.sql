select provider_batch_id, token,
    array_remove(array[case when output_file_id is not null then 'output' end,
        case when error_file_id is not null then 'error' end], null) as kinds
from nightmill.provider_batch
where batch_id = %(batch_id)s and evidence_deleted_at is null and collected_at < %(before)s
order by provider_batch_id
