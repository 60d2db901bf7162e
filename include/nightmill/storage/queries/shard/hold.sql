update nightmill.shard set hold_until = clock_timestamp() + make_interval(secs => %(seconds)s)
where shard_id = %(shard_id)s and lease = %(lease)s
