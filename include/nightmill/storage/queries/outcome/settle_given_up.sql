with given_up as (
    select distinct on (item.ordinal) item.ordinal, item.key, earlier.class, earlier.code, earlier.message,
        earlier.attempts, earlier.provider_batch_id, earlier.created_at, earlier.ended_as,
        coalesce(earlier.origin_batch_id, earlier.batch_id) as origin_batch_id
    from nightmill.item
    join nightmill.dead_letter as earlier on earlier.key = item.key and earlier.batch_id <> %(batch_id)s
        and earlier.class in ('input', 'output', 'policy') and earlier.class || '/' || earlier.code <> all(%(judged_anew)s)
    join nightmill.batch as earlier_batch on earlier_batch.batch_id = coalesce(earlier.origin_batch_id, earlier.batch_id)
    join nightmill.contract on contract.contract_id = earlier_batch.contract_id
        and contract.validators_hash = %(validators_hash)s
    left join nightmill.outcome on outcome.batch_id = %(batch_id)s and outcome.ordinal = item.ordinal
    where item.batch_id = %(batch_id)s and outcome.ordinal is null
    order by item.ordinal, earlier.dead_letter_id desc
), letters as (
    insert into nightmill.dead_letter (batch_id, ordinal, key, class, code, message, attempts, provider_batch_id,
        origin_batch_id, created_at, ended_as)
    select %(batch_id)s, ordinal, key, class, code, message, attempts, provider_batch_id, origin_batch_id, created_at,
        ended_as
    from given_up
)
insert into nightmill.outcome (batch_id, ordinal, kind, class, code)
select %(batch_id)s, ordinal, ended_as, class, code
from given_up
