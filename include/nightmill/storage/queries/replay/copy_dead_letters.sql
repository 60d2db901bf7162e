insert into nightmill.dead_letter (batch_id, ordinal, key, class, code, message, attempts, provider_batch_id,
    origin_batch_id, created_at, ended_as)
select %(batch_id)s, letter.ordinal, letter.key, letter.class, letter.code, letter.message, letter.attempts,
    letter.provider_batch_id, coalesce(letter.origin_batch_id, letter.batch_id), letter.created_at,
    letter.ended_as
from nightmill.dead_letter as letter
left join pg_temp.sent_again on sent_again.ordinal = letter.ordinal
where letter.batch_id = %(parent_id)s and sent_again.ordinal is null
