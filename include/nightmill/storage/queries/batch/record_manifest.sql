update nightmill.batch set
    source_query = %(source_query)s,
    source_parameters = %(source_parameters)s,
    source_snapshot = %(source_snapshot)s,
    item_count = %(item_count)s,
    prompt_tokens = %(prompt_tokens)s,
    content_hash = %(content_hash)s,
    frozen_at = clock_timestamp()
where batch_id = %(batch_id)s
