-- Prompt tokens of an account's files of a model that the provider has taken and not ended, and the account's newest
-- provider batch.
select coalesce(sum(prompt_tokens) filter (where state = 'SUBMITTED' and taken_at is not null
        and provider_batch_id <> %(but)s), 0)::bigint as tokens,
    max(provider_batch_id) as newest
from nightmill.provider_batch
where account = %(account)s and model = %(model)s and (state = 'SUBMITTED' or provider_batch_id = (
    select max(provider_batch_id) from nightmill.provider_batch as newest
    where newest.account = %(account)s and newest.model = %(model)s
))
