update nightmill.hold set revoked = %(revoked)s where hold_id = %(hold_id)s
