select distinct on (gate) gate, generation, passed, decided_at
from nightmill.gate_verdict
where batch_id = %(batch_id)s
order by gate, verdict_id desc
