insert into nightmill.stray_batch (account, provider_id, provider_batch_id, batch_id, raw_status)
select %(account)s, %(provider_id)s, provider_batch_id, batch_id, %(raw_status)s
from nightmill.provider_batch
where token = %(token)s
on conflict (account, provider_id) do nothing
