select concat_ws('/', bucket, class, code) as gap, count(*) as items
from nightmill.item_bucket
where batch_id = %(batch_id)s and bucket not in ('accepted', 'reused', 'excluded')
group by gap
order by items desc, gap
