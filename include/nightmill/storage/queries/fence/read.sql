select batch.generation, shard.lease
from nightmill.batch
left join nightmill.shard on shard.shard_id = %(shard_id)s and shard.batch_id = batch.batch_id
where batch.batch_id = %(batch_id)s
