select exists (
    select
    from nightmill.item
    where item.batch_id = %(batch_id)s and item.ordinal between %(first)s and %(last)s
        and not exists (
            select from nightmill.outcome where outcome.batch_id = %(batch_id)s and outcome.ordinal = item.ordinal
        )
)
