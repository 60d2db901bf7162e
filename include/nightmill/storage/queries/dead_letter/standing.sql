select count(*), min(created_at) from nightmill.dead_letter where batch_id = %(batch_id)s and ended_as = 'dead_lettered'
