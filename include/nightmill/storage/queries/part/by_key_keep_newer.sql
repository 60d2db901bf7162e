-- Shown rows of some pages that are newer than this batch, whatever it carries. What only stands in for a gap gives way
-- to an answer.
insert into {made} (part_id{names})
select %(part_id)s{kept}
from {rows} as shown
where shown.part_id = %(shown_id)s and shown.ctid >= %(first)s::tid and shown.ctid < %(last)s::tid
    and shown.batch_id = any (%(newer)s::bigint[])
    and (shown.gap_reason is null or not exists (
        select from {rows} as carried
        where carried.part_id = %(batch_id)s and carried.source_id = shown.source_id and carried.gap_reason is null
    ))
