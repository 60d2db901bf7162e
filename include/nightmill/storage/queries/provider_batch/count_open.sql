select count(*)
from nightmill.provider_batch
where batch_id = %(batch_id)s and state not in ('COLLECTED', 'ABANDONED')
