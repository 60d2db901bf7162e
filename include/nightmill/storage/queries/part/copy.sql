insert into {made} (part_id{names})
select %(part_id)s{source}
from {rows} as source
where source.part_id = %(source_id)s and source.ctid >= %(first)s::tid and source.ctid < %(last)s::tid
    and source.batch_id <> all (%(without)s::bigint[])
