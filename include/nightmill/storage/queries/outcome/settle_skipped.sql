with skipped as (
    select item.ordinal, item.key, item.skip_reason, item.skip_class, item.skip_message
    from nightmill.item
    left join nightmill.outcome on outcome.batch_id = %(batch_id)s and outcome.ordinal = item.ordinal
    where item.batch_id = %(batch_id)s and item.skip_reason is not null and outcome.ordinal is null
), letters as (
    insert into nightmill.dead_letter (batch_id, ordinal, key, class, code, message, attempts)
    select %(batch_id)s, ordinal, key, skip_class, skip_reason, skip_message, 0
    from skipped
    where skip_message is not null
)
insert into nightmill.outcome (batch_id, ordinal, kind, class, code)
select %(batch_id)s, ordinal, case when skip_message is null then 'excluded' else 'dead_lettered' end, skip_class,
    skip_reason
from skipped
