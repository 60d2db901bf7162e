select provider_id from nightmill.stray_batch where account = %(account)s and booked_at is not null
    and provider_id = any(%(provider_ids)s)
