select gap_facts from nightmill.batch where batch_id = %(batch_id)s
