with wanted as (
    select key from unnest(%(keys)s::bytea[]) as one (key)
)
select wanted.key, result.result_id is not null as reused, result.content_hash,
    coalesce(result.validators_hash <> %(validators_hash)s, false) as outdated
from wanted
left join nightmill.result on result.key = wanted.key and result.effective
where result.result_id is not null
    or exists (
        select
        from nightmill.dead_letter as earlier
        join nightmill.batch as earlier_batch on earlier_batch.batch_id = coalesce(earlier.origin_batch_id, earlier.batch_id)
        join nightmill.contract on contract.contract_id = earlier_batch.contract_id
            and contract.validators_hash = %(validators_hash)s
        where earlier.key = wanted.key and earlier.class in ('input', 'output', 'policy')
            and earlier.class || '/' || earlier.code <> all(%(judged_anew)s)
    )
