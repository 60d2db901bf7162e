update nightmill.result set validators_hash = %(validators_hash)s where result_id = any(%(ids)s)
