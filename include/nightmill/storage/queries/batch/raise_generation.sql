update nightmill.batch set generation = generation + 1 where batch_id = %(batch_id)s
