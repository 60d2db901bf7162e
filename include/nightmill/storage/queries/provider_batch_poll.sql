update nightmill.provider_batch set raw_status = %(raw_status)s, counts = coalesce(%(counts)s, counts)
where provider_batch_id = %(provider_batch_id)s
    and (raw_status, counts) is distinct from (%(raw_status)s, coalesce(%(counts)s, counts))
