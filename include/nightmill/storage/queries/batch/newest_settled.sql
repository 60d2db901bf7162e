select max(batch_id)
from nightmill.batch
where job = %(job)s and frozen_at is not null and ended_at is not null and state <> 'ESTIMATED'
