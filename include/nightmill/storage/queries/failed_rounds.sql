select max(attempts), max(last_at)
from (
    select count(*) as attempts, max(made_at) as last_at
    from nightmill.attempt
    where batch_id = %(batch_id)s and %(ordinals)s::int8multirange @> ordinal and class is distinct from 'capacity'
    group by ordinal
) as failed
