with earlier as materialized (
    select ordinal, count(*) as attempts, max(made_at) as last_at
    from nightmill.attempt
    where batch_id = %(batch_id)s and ordinal between %(first)s and %(last)s
        and provider_batch_id <> %(provider_batch_id)s
    group by ordinal
)
insert into nightmill.attempt (batch_id, ordinal, provider_batch_id, class, code, sent_upstream, uncached_tokens,
    output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, odd_usage, model, finish_reason, attempt_no,
    backoff_s)
select %(batch_id)s, arrived.ordinal, %(provider_batch_id)s, arrived.class, arrived.code, arrived.sent_upstream,
    arrived.uncached_tokens, arrived.output_tokens, arrived.cache_read_tokens, arrived.cache_write_tokens,
    arrived.reasoning_tokens, arrived.odd_usage, arrived.model, arrived.finish_reason,
    least(1 + coalesce(earlier.attempts, 0), 32767),
    case when earlier.last_at is not null
        then greatest(extract(epoch from %(intent_at)s::timestamptz - earlier.last_at), 0)
    end
from pg_temp.arrived
left join earlier using (ordinal)
