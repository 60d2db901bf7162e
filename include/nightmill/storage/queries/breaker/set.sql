insert into nightmill.breaker (batch_id, kind, state, cause, remedy)
values (%(batch_id)s, %(kind)s, %(state)s, %(cause)s, %(remedy)s)
on conflict (batch_id, kind) do update set
    state = excluded.state,
    since = clock_timestamp(),
    cause = excluded.cause,
    remedy = excluded.remedy
where (breaker.state, breaker.cause) is distinct from (excluded.state, excluded.cause)
