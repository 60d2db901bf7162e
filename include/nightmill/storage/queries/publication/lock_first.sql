select pg_advisory_xact_lock(7108, hashtext(%(view_name)s))
