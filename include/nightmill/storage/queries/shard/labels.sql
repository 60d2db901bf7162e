select shard.shard_id, concat_ws(' .. ', first.tenant, nullif(last.tenant, first.tenant)) as tenants, shard.items,
    shard.prompt_tokens
from nightmill.shard
join nightmill.item as first on first.batch_id = shard.batch_id and first.ordinal = shard.first_ordinal
join nightmill.item as last on last.batch_id = shard.batch_id and last.ordinal = shard.last_ordinal
where shard.batch_id = %(batch_id)s and first.batch_id = %(batch_id)s and last.batch_id = %(batch_id)s
    and shard.state not in ('SETTLED', 'CANCELLED')
order by shard.first_ordinal
