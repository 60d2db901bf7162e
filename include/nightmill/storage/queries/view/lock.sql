select pg_advisory_lock(7108, hashtext(%(view_name)s))
