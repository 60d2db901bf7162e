select distinct on (gate) gate, generation, verdict as word, decided_by, decided_at
from nightmill.gate_verdict
where batch_id = %(batch_id)s
order by gate, verdict_id desc
