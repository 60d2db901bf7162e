-- What an interval showed before another batch did, unless that was taken back since: one part, or those of shorter
-- intervals that a longer one replaced.
select earlier.publish_seq, array_agg(part.batch_id) as batch_ids
from nightmill.publication as earlier
join nightmill.publication_part as part using (publish_seq)
where earlier.view_name = %(view_name)s and earlier.publish_seq < %(publish_seq)s
    and earlier.kind in ('publish', 'rollback')
    and part.interval_start >= %(interval_start)s and part.interval_end <= %(interval_end)s
group by earlier.publish_seq
having not bool_or(
    part.batch_id = %(batch_id)s
    or exists (
        select from nightmill.hold
        where hold.view_name = %(view_name)s and hold.publish_seq > earlier.publish_seq
            and part.batch_id = any(hold.taken_back)
    )
)
order by earlier.publish_seq desc
limit 1
