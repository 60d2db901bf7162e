-- Part by part: `offset 0` keeps the planner from joining the whole batch at once, of which a part is a small piece.
select unsettled.ordinal, unsettled.tokens
from nightmill.shard
cross join unnest(shard.ordinals * int8multirange(int8range(shard.first_ordinal, shard.last_ordinal, '[]'))) as part
cross join lateral (
    select item.ordinal, item.tokens
    from nightmill.item
    left join nightmill.outcome on outcome.batch_id = %(batch_id)s and outcome.ordinal = item.ordinal
        and outcome.ordinal >= lower(part) and outcome.ordinal < upper(part)
    where item.batch_id = %(batch_id)s and item.ordinal >= lower(part) and item.ordinal < upper(part)
        and outcome.ordinal is null
    offset 0
) as unsettled
where shard.shard_id = %(shard_id)s
order by unsettled.ordinal
