select pg_advisory_xact_lock(7109, hashtext(%(view_name)s))
