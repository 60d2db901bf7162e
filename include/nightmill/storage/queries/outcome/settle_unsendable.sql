with refused as (
    select item.ordinal, item.key,
        (select count(*) from nightmill.attempt
         where attempt.batch_id = %(batch_id)s and attempt.ordinal = item.ordinal
            and attempt.class is distinct from 'capacity') as attempts
    from nightmill.item
    left join nightmill.outcome on outcome.batch_id = %(batch_id)s and outcome.ordinal = item.ordinal
    where item.batch_id = %(batch_id)s and item.ordinal = any(%(ordinals)s) and outcome.ordinal is null
), letters as (
    insert into nightmill.dead_letter (batch_id, ordinal, key, class, code, message, attempts)
    select %(batch_id)s, ordinal, key, %(class)s, %(code)s, %(message)s, attempts
    from refused
)
insert into nightmill.outcome (batch_id, ordinal, kind, class, code)
select %(batch_id)s, ordinal, 'dead_lettered', %(class)s, %(code)s
from refused
