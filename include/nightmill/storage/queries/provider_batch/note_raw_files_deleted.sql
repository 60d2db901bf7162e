update nightmill.provider_batch set evidence_deleted_at = clock_timestamp()
where provider_batch_id = any(%(provider_batch_ids)s)
