insert into nightmill.account_limit (account, model, refusals, refused_as, refused_since, refused_at, next_at, probe,
    known_until, tokens, tokens_refused, file_bytes, file_requests, size_refused_at)
values (%(account)s, %(model)s, %(refusals)s, %(refused_as)s, %(refused_since)s, %(refused_at)s, %(next_at)s, %(probe)s,
    %(known_until)s, %(tokens)s, %(tokens_refused)s, %(file_bytes)s, %(file_requests)s, %(size_refused_at)s)
on conflict (account, model) do update set
    refusals = excluded.refusals,
    refused_as = excluded.refused_as,
    refused_since = excluded.refused_since,
    refused_at = excluded.refused_at,
    next_at = excluded.next_at,
    probe = excluded.probe,
    known_until = excluded.known_until,
    tokens = excluded.tokens,
    tokens_refused = excluded.tokens_refused,
    file_bytes = excluded.file_bytes,
    file_requests = excluded.file_requests,
    size_refused_at = excluded.size_refused_at
