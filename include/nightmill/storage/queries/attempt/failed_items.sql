select ordinal, count(*) filter (where class is distinct from 'capacity') as failures,
    (array_agg(class order by provider_batch_id desc))[1] as class,
    (array_agg(code order by provider_batch_id desc))[1] as code,
    max(provider_batch_id) as provider_batch_id,
    count(*) filter (where code = 'truncated') as truncations,
    max(made_at) as last_at
from nightmill.attempt
where batch_id = %(batch_id)s and ordinal between %(first)s and %(last)s
    and %(ordinals)s::int8multirange @> ordinal
group by ordinal
order by ordinal
