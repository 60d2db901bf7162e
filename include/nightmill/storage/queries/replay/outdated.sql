select outcome.ordinal, result.answer
from nightmill.outcome
join nightmill.result on result.result_id = outcome.result_id and result.validators_hash <> %(validators_hash)s
where outcome.batch_id = %(parent_id)s and outcome.kind in ('accepted', 'reused')
order by outcome.ordinal
