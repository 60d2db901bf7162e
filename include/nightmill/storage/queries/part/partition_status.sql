select inhdetachpending
from pg_inherits
where inhparent = to_regclass('nightmill.' || quote_ident(%(parent)s))
    and inhrelid = to_regclass('nightmill.' || quote_ident(nightmill.partition_name(%(parent)s, %(batch_id)s)))
