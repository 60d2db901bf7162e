delete from nightmill.shard where batch_id = %(batch_id)s
