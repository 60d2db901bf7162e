with skipped as (
    select item.ordinal, item.key, item.skip_reason
    from nightmill.item
    left join nightmill.outcome on outcome.batch_id = %(batch_id)s and outcome.ordinal = item.ordinal
    where item.batch_id = %(batch_id)s and item.skip_reason is not null and outcome.ordinal is null
), letters as (
    insert into nightmill.dead_letter (batch_id, ordinal, key, class, code, message, attempts)
    select %(batch_id)s, ordinal, key, 'input', skip_reason,
        'never sent: with the answer''s reserve it is longer than provider.context_window_tokens; shorten the text in the '
        'source query, or take a model with a larger window', 0
    from skipped
    where skip_reason = 'over_context'
)
insert into nightmill.outcome (batch_id, ordinal, kind, class, code)
select %(batch_id)s, ordinal, case skip_reason when 'over_context' then 'dead_lettered' else 'excluded' end, 'input',
    skip_reason
from skipped
