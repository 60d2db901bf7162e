-- Accounts that took no file of a model for long. Of one batch: those that it sends to, or would.
select account, model, refusals, refused_as, refused_since
from nightmill.account_limit as limits
where refused_since <= %(before)s
    and (%(model)s::text is null or model = %(model)s)
    and (%(account)s::text is null or account = %(account)s)
    and (%(batch_id)s::int8 is null
        or not exists (select from nightmill.provider_batch where batch_id = %(batch_id)s)
        or exists (
            select from nightmill.provider_batch as sent
            where sent.batch_id = %(batch_id)s and sent.account = limits.account and sent.model = limits.model
        ))
order by account, model
