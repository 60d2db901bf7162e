-- Its revision is above all superseded ones, also where a person took an earlier one out of use by hand.
update nightmill.result set effective = false,
    revision = greatest(result.revision, 1 + coalesce((select max(earlier.revision) from nightmill.result as earlier
        where earlier.key = result.key and not earlier.effective), 0))
from pg_temp.arrived
join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = arrived.ordinal
    and item.ordinal between %(first)s and %(last)s
where arrived.accepted and result.key = item.key and result.effective
    and (result.validators_hash <> %(validators_hash)s or (%(reprocess)s and result.batch_id <> %(batch_id)s))
