update nightmill.result set validators_hash = %(validators_hash)s, citations = renewed.citations
from pg_temp.renewed
where result.result_id = renewed.result_id
