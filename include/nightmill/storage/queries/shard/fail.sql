update nightmill.shard set failed_at = clock_timestamp(), state_reason = %(reason)s
where shard_id = %(shard_id)s and lease = %(lease)s and state in ('QUEUED', 'RUNNING', 'RETRY_WAIT')
