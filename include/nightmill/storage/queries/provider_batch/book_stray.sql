update nightmill.stray_batch set
    raw_status = %(raw_status)s,
    booked_at = clock_timestamp(),
    answers = %(answers)s,
    prompt_tokens = %(prompt_tokens)s,
    cache_read_tokens = %(cache_read_tokens)s,
    output_tokens = %(output_tokens)s
where account = %(account)s and provider_id = %(provider_id)s and booked_at is null
