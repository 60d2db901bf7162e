select pg_advisory_unlock(7108, hashtext(%(view_name)s))
