-- Previews that nobody has published or cancelled, with when each became one.
select batch.batch_id, batch.job, batch.contract_id, max(transition.made_at) as staged_at
from nightmill.batch
join nightmill.transition on transition.batch_id = batch.batch_id and transition.entity = 'batch'
    and transition.to_state = 'STAGED'
where batch.state = 'STAGED'
group by batch.batch_id
order by batch.batch_id
