select mine.ordinal
from nightmill.item as theirs
join nightmill.item as mine on mine.key = theirs.key
where theirs.batch_id = %(other)s and theirs.ordinal >= lower(%(carried)s::int8multirange)
    and theirs.ordinal < upper(%(carried)s::int8multirange) and %(carried)s::int8multirange @> theirs.ordinal
    and mine.batch_id = %(batch_id)s and mine.ordinal >= lower(%(ordinals)s::int8multirange)
    and mine.ordinal < upper(%(ordinals)s::int8multirange) and %(ordinals)s::int8multirange @> mine.ordinal
