select bucket, count(*) from nightmill.item_bucket
where batch_id = %(batch_id)s and ordinal between %(first)s and %(last)s
group by bucket
order by bucket
