-- The probe of an account that is out: its create may be under way, or its validation. One whose worker has vanished
-- keeps the others waiting for a while only; should that worker come back, it finds that another one is out.
select limits.probe
from nightmill.account_limit as limits
join nightmill.provider_batch as probe on probe.provider_batch_id = limits.probe
where limits.account = %(account)s and limits.refusals > 0 and probe.state in ('INTENT', 'CREATING', 'SUBMITTED')
    and probe.taken_at is null
    and probe.intent_at > clock_timestamp()
        - case probe.state when 'INTENT' then interval '15 minutes' else interval '6 hours' end
limit 1
