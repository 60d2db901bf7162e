-- Rows that are alike are counted together; those of which values need a closer look come one by one.
select coalesce(item.tenant, shown.tenant, '') as tenant, coalesce(item.domain, shown.domain, '') as domain,
    width_bucket(coalesce(item.tokens, gone.tokens), %(bands)s::int[]) as band,
    item.ordinal is not null as is_new, shown.source_id is not null as is_old,
    staged.citations is not null as cited, shown.citations is not null as cited_before,
    case when item.ordinal is not null and shown.source_id is not null then array[{differs}]::boolean[] end as differs,
    case when item.ordinal is not null and shown.source_id is not null then {old} end as old,
    case when item.ordinal is not null and shown.source_id is not null then {new} end as new,
    count(*) as rows
from {staged} as staged
join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = staged.ordinal
full join {shown} as shown on shown.source_id = staged.source_id
left join nightmill.item as gone on gone.batch_id = %(baseline)s and gone.source_id = shown.source_id
    and staged.source_id is null
group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
