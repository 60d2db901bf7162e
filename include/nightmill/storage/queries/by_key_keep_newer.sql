-- Shown rows of some pages that are newer than this batch, whatever it carries.
insert into {made} (part_id{names})
select %(part_id)s{kept}
from {rows} as shown
where shown.part_id = %(shown_id)s and shown.ctid >= %(first)s::tid and shown.ctid < %(last)s::tid
    and shown.batch_id = any (%(newer)s::bigint[])
