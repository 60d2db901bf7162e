update nightmill.batch set max_tries = greatest(max_tries, %(max_tries)s) where batch_id = %(batch_id)s
