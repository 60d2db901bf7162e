insert into nightmill.quarantine (batch_id, shard_id, what, held_generation, held_lease, rows, why)
values (%(batch_id)s, %(shard_id)s, %(what)s, %(generation)s, %(lease)s, %(rows)s, %(why)s)
