select batch.batch_id, verdict.generation, verdict.verdict as word, verdict.details, verdict.decided_at
from nightmill.batch
left join lateral (
    select * from nightmill.gate_verdict
    where gate_verdict.batch_id = batch.batch_id and gate = 'compare'
    order by verdict_id desc
    limit 1
) as verdict on true
where batch.batch_id = %(batch_id)s and dag_id = %(dag_id)s
