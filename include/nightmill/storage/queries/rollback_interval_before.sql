-- What an interval showed before another batch did, unless that was taken back since.
select part.publish_seq, part.batch_id
from nightmill.publication as earlier
join nightmill.publication_part as part using (publish_seq)
where earlier.view_name = %(view_name)s and earlier.publish_seq < %(publish_seq)s
    and earlier.kind in ('publish', 'rollback')
    and part.interval_start = %(interval_start)s and part.interval_end = %(interval_end)s
    and part.batch_id <> %(batch_id)s
    and not exists (
        select from nightmill.hold
        where hold.view_name = earlier.view_name and hold.publish_seq > earlier.publish_seq
            and part.batch_id = any(hold.taken_back)
    )
order by earlier.publish_seq desc
limit 1
