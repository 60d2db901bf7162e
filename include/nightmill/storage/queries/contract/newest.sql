select distinct on (job) job, contract_id
from nightmill.batch
order by job, batch_id desc
