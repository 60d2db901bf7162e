select refusals, refused_as, refused_since, refused_at, next_at, probe, known_until, tokens, tokens_refused, file_bytes,
    file_requests, size_refused_at
from nightmill.account_limit
where account = %(account)s and model = %(model)s
