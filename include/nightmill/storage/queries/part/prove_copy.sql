-- Whether a copy holds the same rows: as many, and the same sum of their hashes.
select copied.rows, original.rows, copied.hash is not distinct from original.hash
from (
    select count(*) as rows, sum(hashtextextended(row(null{made_columns})::text, 0)) as hash from {made} as made
) as copied, (
    select count(*) as rows, sum(hashtextextended(row(null{source})::text, 0)) as hash
    from {rows} as source
    where source.part_id = any (%(source_ids)s) and source.batch_id <> all (%(without)s::bigint[])
) as original
