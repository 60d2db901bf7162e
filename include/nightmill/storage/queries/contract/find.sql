select contract_id from nightmill.contract where job = %(job)s and folder_hash = %(folder_hash)s
