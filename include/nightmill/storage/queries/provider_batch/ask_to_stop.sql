update nightmill.provider_batch set stop_asked_at = coalesce(stop_asked_at, clock_timestamp())
where provider_batch_id = %(provider_batch_id)s
