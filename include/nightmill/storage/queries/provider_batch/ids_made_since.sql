-- Ids of an account's batches whose create calls went out since then: none of them is that of another create call.
select provider_id
from nightmill.provider_batch
where account = %(account)s and provider_id is not null and creating_at >= %(since)s
