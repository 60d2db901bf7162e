select pg_advisory_xact_lock(7107, hashtext(name))
from (values (%(account)s), (%(job)s)) as lock (name)
order by name
