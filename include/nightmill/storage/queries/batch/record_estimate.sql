update nightmill.batch set estimate = %(estimate)s where batch_id = %(batch_id)s
