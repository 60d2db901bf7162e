select batch_id
from nightmill.batch
where parent_batch_id = %(parent_id)s and state <> 'ESTIMATED' and (state <> 'CANCELLED' or frozen_at is not null)
