with compared as (
    select to_jsonb(rows.{field}) as answer, gold.answers -> %(field)s as known
    from {rows} as rows
    join pg_temp.gold on gold.source_id = rows.source_id
    where rows.part_id = %(batch_id)s and rows.gap_reason is null and jsonb_typeof(gold.answers -> %(field)s) <> 'null'
)
select count(*), count(*) filter (where answer = known or (jsonb_typeof(answer) is distinct from 'array'
    and jsonb_typeof(known) = 'array' and known @> answer))
from compared
