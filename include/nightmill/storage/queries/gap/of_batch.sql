select gap.bucket, gap.class as kind, gap.code, item.tenant, item.required, count(*) as items
from nightmill.item_bucket as gap
join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = gap.ordinal
where gap.batch_id = %(batch_id)s and gap.bucket not in ('accepted', 'reused', 'excluded')
group by gap.bucket, gap.class, gap.code, item.tenant, item.required
order by items desc, gap.bucket, kind, gap.code, item.tenant, item.required
