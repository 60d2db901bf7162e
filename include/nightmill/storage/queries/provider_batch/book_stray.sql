update nightmill.stray_batch set
    raw_status = %(raw_status)s,
    booked_at = clock_timestamp(),
    answers = %(answers)s,
    prompt_tokens = %(prompt_tokens)s,
    cached_tokens = %(cached_tokens)s,
    completion_tokens = %(completion_tokens)s
where account = %(account)s and provider_id = %(provider_id)s and booked_at is null
