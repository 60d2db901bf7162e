select extract(epoch from max(outcome.settled_at) - min(batch.frozen_at))::float8
from nightmill.batch
join nightmill.outcome on outcome.batch_id = %(batch_id)s
where batch.batch_id = %(batch_id)s
