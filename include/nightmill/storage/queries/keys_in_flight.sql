select mine.ordinal
from nightmill.provider_batch as other
join nightmill.batch as other_batch on other_batch.batch_id = other.batch_id and other_batch.ended_at is null
join nightmill.item as theirs on theirs.batch_id = other.batch_id and other.ordinals @> theirs.ordinal
join nightmill.item as mine on mine.batch_id = %(batch_id)s and mine.key = theirs.key
    and %(ordinals)s::int8multirange @> mine.ordinal
where other.job = %(job)s and other.batch_id <> %(batch_id)s and other.state not in ('COLLECTED', 'ABANDONED')
