insert into {outcomes} (batch_id, ordinal, kind, result_id, class, code)
select %(batch_id)s, outcome.ordinal, case outcome.kind when 'accepted' then 'reused' else outcome.kind end,
    outcome.result_id, outcome.class, outcome.code
from nightmill.outcome
left join pg_temp.sent_again on sent_again.ordinal = outcome.ordinal
where outcome.batch_id = %(parent_id)s and sent_again.ordinal is null
order by outcome.ordinal
