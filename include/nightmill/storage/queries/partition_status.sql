select inhdetachpending
from pg_inherits
where inhparent = to_regclass('nightmill.' || quote_ident(%(parent)s))
    and inhrelid = to_regclass('nightmill.' || quote_ident(%(child)s))
