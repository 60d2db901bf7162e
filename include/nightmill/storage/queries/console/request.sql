select note, requested_by from nightmill.batch where batch_id = %(batch_id)s
