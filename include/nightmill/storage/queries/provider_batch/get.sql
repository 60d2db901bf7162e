select {columns}
from nightmill.provider_batch as one
where provider_batch_id = %(provider_batch_id)s
