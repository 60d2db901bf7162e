update nightmill.result set effective = false
from pg_temp.arrived
join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = arrived.ordinal
    and item.ordinal between %(first)s and %(last)s
where arrived.class is null and result.key = item.key and result.effective
    and (result.validators_hash <> %(validators_hash)s or (%(reprocess)s and result.batch_id <> %(batch_id)s))
