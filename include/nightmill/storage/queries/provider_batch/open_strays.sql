-- Strays of an account that are not booked. One that was not seen to end for a month is let go: its results are gone.
select provider_id, provider_batch_id, batch_id, raw_status
from nightmill.stray_batch
where account = %(account)s and booked_at is null and found_at > clock_timestamp() - interval '31 days'
order by found_at
