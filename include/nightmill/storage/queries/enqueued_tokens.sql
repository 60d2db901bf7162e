select coalesce(sum(prompt_tokens), 0)
from nightmill.provider_batch
where account = %(account)s and model = %(model)s and state not in ('COLLECTED', 'ABANDONED', 'ENDED')
