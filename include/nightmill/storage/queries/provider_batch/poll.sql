with seen as (
    select coalesce(%(counts)s, counts) as counts, coalesce(%(output_file_id)s, output_file_id) as output_file_id,
        coalesce(%(error_file_id)s, error_file_id) as error_file_id, coalesce(%(usage)s, usage) as usage,
        coalesce(taken_at, %(taken_at)s) as taken_at, coalesce(over_at, %(over_at)s) as over_at,
        case when %(unknown_at)s::timestamptz is not null then coalesce(unknown_since, %(unknown_at)s) end
            as unknown_since,
        coalesce(provider_made_at, %(made_at)s) as provider_made_at
    from nightmill.provider_batch
    where provider_batch_id = %(provider_batch_id)s
)
update nightmill.provider_batch as one set
    raw_status = %(raw_status)s,
    counts = seen.counts,
    output_file_id = seen.output_file_id,
    error_file_id = seen.error_file_id,
    usage = seen.usage,
    taken_at = seen.taken_at,
    over_at = seen.over_at,
    unknown_since = seen.unknown_since,
    provider_made_at = seen.provider_made_at
from seen
where one.provider_batch_id = %(provider_batch_id)s
    and (one.raw_status, one.counts, one.output_file_id, one.error_file_id, one.usage, one.taken_at, one.over_at,
        one.unknown_since, one.provider_made_at)
    is distinct from (%(raw_status)s, seen.counts, seen.output_file_id, seen.error_file_id, seen.usage, seen.taken_at,
        seen.over_at, seen.unknown_since, seen.provider_made_at)
returning {columns}
