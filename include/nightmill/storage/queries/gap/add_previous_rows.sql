-- What the view shows of the same document, with its own provenance. Rows of one tenant are never shown as another's.
-- An id that has a row from a newer interval gets no second one.
insert into {rows} (part_id, batch_id, ordinal, source_id, source_version, tenant, domain, result_id, reused, model,
    prompt_version, answered_at, citations, data_interval_start, data_interval_end, gap_reason{names})
select %(batch_id)s, %(batch_id)s, item.ordinal, item.source_id, shown.source_version, item.tenant, shown.domain,
    shown.result_id, true, shown.model, shown.prompt_version, shown.answered_at, shown.citations,
    batch.data_interval_start, batch.data_interval_end, 'previous: ' || concat_ws(': ', gap.bucket, gap.code){as_shown}
from nightmill.batch
join nightmill.item_bucket as gap on gap.batch_id = %(batch_id)s
join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = gap.ordinal
join unnest(%(buckets)s::text[], %(kinds)s::text[], %(codes)s::text[], %(tenants)s::text[], %(shows)s::text[])
    as ruled (bucket, kind, code, tenant, show)
    on ruled.bucket = gap.bucket and ruled.kind = coalesce(gap.class, '') and ruled.code = coalesce(gap.code, '')
    and ruled.tenant = item.tenant
join {rows} as shown on shown.part_id = %(shown_part)s and shown.source_id = item.source_id
    and shown.tenant = item.tenant and shown.result_id is not null
    and (%(shown_batch)s::int8 is null or shown.batch_id = %(shown_batch)s::int8)
where batch.batch_id = %(batch_id)s and not item.required and ruled.show = 'previous'
    and not exists (
        select from {rows} as written
        where written.part_id = %(batch_id)s and written.source_id = item.source_id
    )
order by item.ordinal
