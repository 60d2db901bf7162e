update nightmill.provider_batch as one set input_file_id = %(input_file_id)s
where provider_batch_id = %(provider_batch_id)s and state = 'INTENT'
returning {columns}
