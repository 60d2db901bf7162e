update nightmill.batch set counts = %(counts)s where batch_id = %(batch_id)s
