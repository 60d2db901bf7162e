with tried as (
    select ordinal, count(*) as attempts, coalesce(sum(prompt_tokens), 0) as prompt,
        coalesce(sum(output_tokens), 0) as completion,
        coalesce(sum(coalesce(uncached_tokens, 0) * %(input)s::float8 + coalesce(cache_read_tokens, 0) * %(cached)s::float8
            + coalesce(cache_write_tokens, 0) * %(cache_write)s::float8
            + coalesce(output_tokens, 0) * %(output)s::float8), 0) as cost
    from nightmill.attempt
    where batch_id = %(batch_id)s
    group by ordinal
)
select item.tenant, item.domain, width_bucket(item.tokens, %(bands)s::int[]) as band, count(*) as items,
    count(*) filter (where settled.bucket in ('accepted', 'reused')) as accepted,
    count(*) filter (where settled.bucket = 'accepted') as fresh,
    count(*) filter (where settled.bucket in ('dead_lettered', 'rejected_by_reviewer')) as rejected,
    count(*) filter (where settled.bucket = 'in_review') as in_review,
    count(*) filter (where settled.bucket = 'excluded') as excluded,
    count(tried.ordinal) as asked, coalesce(sum(tried.attempts), 0)::bigint as attempts,
    coalesce(sum(tried.prompt), 0)::bigint as prompt, coalesce(sum(tried.completion), 0)::bigint as completion,
    coalesce(sum(tried.cost), 0) as cost, coalesce(sum(tried.cost * tried.cost), 0) as cost_squares
from nightmill.item
left join nightmill.item_bucket as settled on settled.batch_id = %(batch_id)s and settled.ordinal = item.ordinal
left join tried on tried.ordinal = item.ordinal
where item.batch_id = %(batch_id)s
group by item.tenant, item.domain, band
