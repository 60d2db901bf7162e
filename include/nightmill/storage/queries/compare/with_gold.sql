select item.tenant, item.domain, width_bucket(item.tokens, %(bands)s::int[]) as band, gold.answers as known,
    {new} as new, case when shown.source_id is not null then {old} end as old
from pg_temp.gold
join {staged} as staged on staged.source_id = gold.source_id
join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = staged.ordinal
left join {shown} as shown on shown.source_id = gold.source_id
