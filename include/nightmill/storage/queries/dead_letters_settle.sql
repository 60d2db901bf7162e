with counted as (
    select arrived.ordinal, arrived.class, arrived.code, arrived.message, arrived.retryable, item.key, tried.*
    from pg_temp.arrived
    join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = arrived.ordinal
        and item.ordinal between %(first)s and %(last)s
    cross join lateral (
        select count(*) as attempts, count(*) filter (where attempt.class = arrived.class) as failures_of_class
        from nightmill.attempt
        where attempt.batch_id = %(batch_id)s and attempt.ordinal = arrived.ordinal
            and attempt.class is distinct from 'capacity'
    ) as tried
    where arrived.class is not null and arrived.class <> 'capacity'
), given_up as (
    select *
    from counted
    where not retryable
        or class = 'transient' and (attempts >= %(max_attempts)s or failures_of_class > %(transient_retries)s)
        or class = 'output' and (attempts >= %(max_attempts)s or failures_of_class > %(output_retries)s)
), letters as (
    insert into nightmill.dead_letter (batch_id, ordinal, key, class, code, message, attempts, provider_batch_id)
    select %(batch_id)s, ordinal, key, class, code, message, attempts, %(provider_batch_id)s
    from given_up
)
insert into nightmill.outcome (batch_id, ordinal, kind, class, code)
select %(batch_id)s, ordinal, 'dead_lettered', class, code
from given_up
