select job, folder_hash, files from nightmill.contract where contract_id = %(contract_id)s
