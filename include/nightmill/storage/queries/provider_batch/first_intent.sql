select min(intent_at) from nightmill.provider_batch where batch_id = %(batch_id)s
