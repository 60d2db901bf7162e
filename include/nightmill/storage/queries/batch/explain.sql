update nightmill.batch set state_reason = %(reason)s, blocked_by = %(blocked_by)s
where batch_id = %(batch_id)s and state = %(state)s and generation = %(generation)s
