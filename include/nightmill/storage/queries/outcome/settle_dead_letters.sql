with counted as (
    select arrived.ordinal, arrived.class, arrived.code, arrived.message, arrived.retryable, arrived.asks_a_person, item.key, tried.*
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
    select *, case when asks_a_person then 'in_review' when class = 'output' then %(exhausted)s else 'dead_lettered' end
        as ended_as
    from counted
    where not retryable
        or class = 'transient' and (attempts >= %(max_attempts)s or failures_of_class > %(transient_retries)s)
        or class = 'output' and (attempts >= %(max_attempts)s or failures_of_class > %(output_retries)s)
), letters as (
    insert into nightmill.dead_letter (batch_id, ordinal, key, class, code, message, attempts, provider_batch_id,
        ended_as)
    select %(batch_id)s, ordinal, key, class, code, message, attempts, %(provider_batch_id)s, ended_as
    from given_up
), settled as (
    insert into nightmill.outcome (batch_id, ordinal, kind, class, code)
    select %(batch_id)s, ordinal, ended_as, class, code
    from given_up
    returning kind
)
select count(*) filter (where kind = 'dead_lettered'), count(*) filter (where kind = 'in_review')
from settled
