update nightmill.batch set gap_facts = %(facts)s where batch_id = %(batch_id)s
