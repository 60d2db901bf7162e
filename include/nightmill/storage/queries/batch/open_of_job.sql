select batch_id from nightmill.batch where job = %(job)s and ended_at is null order by batch_id
