-- The newest earlier publication that shows other batches than are shown now, and none that was taken back since.
with shown as (
    select array_agg(distinct batch_id order by batch_id) as batches
    from nightmill.publication_part
    where publish_seq = %(publish_seq)s
)
select earlier.publish_seq
from nightmill.publication as earlier
cross join lateral (
    select array_agg(distinct batch_id order by batch_id) as batches
    from nightmill.publication_part
    where publication_part.publish_seq = earlier.publish_seq
) as listed
cross join shown
where earlier.view_name = %(view_name)s and earlier.publish_seq < %(publish_seq)s
    and earlier.kind in ('publish', 'rollback')
    and listed.batches is not null and listed.batches is distinct from shown.batches
    and not exists (
        select from nightmill.hold
        where hold.view_name = earlier.view_name and hold.publish_seq > earlier.publish_seq
            and hold.taken_back && listed.batches
    )
order by earlier.publish_seq desc
limit 1
