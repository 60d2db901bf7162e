select distinct on (gate) gate, passed
from nightmill.gate_verdict
where batch_id = %(batch_id)s and generation = %(generation)s
order by gate, verdict_id desc
