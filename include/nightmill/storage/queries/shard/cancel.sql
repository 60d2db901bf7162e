update nightmill.shard set state = 'CANCELLED', state_reason = %(reason)s, lease = lease + 1
where batch_id = %(batch_id)s and state in ('QUEUED', 'RUNNING', 'RETRY_WAIT')
