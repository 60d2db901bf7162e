select distinct on (gate) verdict_id, gate, verdict as word, details, config_hash, decided_by, decided_at
from nightmill.gate_verdict
where batch_id = %(batch_id)s and generation = %(generation)s
order by gate, verdict_id desc
