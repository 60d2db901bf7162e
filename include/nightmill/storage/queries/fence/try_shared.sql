select batch_id
from unnest(%(batch_ids)s::int8[]) as wanted (batch_id)
where not pg_try_advisory_xact_lock_shared(7106, batch_id::int)
