with seen as (
    select coalesce(%(requests_done)s, requests_done) as requests_done,
        coalesce(%(requests_answered)s, requests_answered) as requests_answered,
        coalesce(%(requests_total)s, requests_total) as requests_total, result_refs || %(result_refs)s as result_refs,
        coalesce(%(usage)s, usage) as usage, coalesce(%(window_ends_at)s, window_ends_at) as window_ends_at,
        coalesce(%(results_until)s, results_until) as results_until, coalesce(taken_at, %(taken_at)s) as taken_at,
        coalesce(over_at, %(over_at)s) as over_at,
        case when %(unknown_at)s::timestamptz is not null then coalesce(unknown_since, %(unknown_at)s) end
            as unknown_since,
        coalesce(provider_made_at, %(made_at)s) as provider_made_at
    from nightmill.provider_batch
    where provider_batch_id = %(provider_batch_id)s
)
update nightmill.provider_batch as one set
    raw_status = %(raw_status)s,
    status = %(status)s,
    stopped = %(stopped)s,
    requests_done = seen.requests_done,
    requests_answered = seen.requests_answered,
    requests_total = seen.requests_total,
    result_refs = seen.result_refs,
    usage = seen.usage,
    window_ends_at = seen.window_ends_at,
    results_until = seen.results_until,
    taken_at = seen.taken_at,
    over_at = seen.over_at,
    unknown_since = seen.unknown_since,
    provider_made_at = seen.provider_made_at
from seen
where one.provider_batch_id = %(provider_batch_id)s
    and (one.raw_status, one.status, one.stopped, one.requests_done, one.requests_answered, one.requests_total,
        one.result_refs, one.usage, one.window_ends_at, one.results_until, one.taken_at, one.over_at,
        one.unknown_since, one.provider_made_at)
    is distinct from (%(raw_status)s, %(status)s, %(stopped)s, seen.requests_done, seen.requests_answered,
        seen.requests_total, seen.result_refs, seen.usage, seen.window_ends_at, seen.results_until, seen.taken_at,
        seen.over_at, seen.unknown_since, seen.provider_made_at)
returning {columns}
