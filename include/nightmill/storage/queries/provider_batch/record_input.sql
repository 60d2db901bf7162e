update nightmill.provider_batch as one set input_ref = %(input_ref)s
where provider_batch_id = %(provider_batch_id)s and state = 'INTENT'
returning {columns}
