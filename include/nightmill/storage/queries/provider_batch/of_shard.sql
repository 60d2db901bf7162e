select {columns}
from nightmill.provider_batch as one
where shard_id = %(shard_id)s
order by provider_batch_id
