select batch_id
from nightmill.batch
where params ->> 'publish_run' = %(run_id)s and state in ('VALIDATING', 'BLOCKED')
