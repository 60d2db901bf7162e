-- In by_key an id that has a result stays as it is shown: kept_part is what is shown there, null in other modes.
insert into {rows} (part_id, batch_id, ordinal, source_id, source_version, tenant, domain, data_interval_start,
    data_interval_end, gap_reason)
select %(batch_id)s, %(batch_id)s, item.ordinal, item.source_id, item.source_version, item.tenant, item.domain,
    batch.data_interval_start, batch.data_interval_end, concat_ws(': ', gap.bucket, gap.code)
from nightmill.batch
join nightmill.item_bucket as gap on gap.batch_id = %(batch_id)s
join nightmill.item on item.batch_id = %(batch_id)s and item.ordinal = gap.ordinal
join unnest(%(buckets)s::text[], %(kinds)s::text[], %(codes)s::text[], %(tenants)s::text[], %(shows)s::text[])
    as ruled (bucket, kind, code, tenant, show)
    on ruled.bucket = gap.bucket and ruled.kind = coalesce(gap.class, '') and ruled.code = coalesce(gap.code, '')
    and ruled.tenant = item.tenant
where batch.batch_id = %(batch_id)s and not item.required and ruled.show in ('null_row', 'previous')
    and not exists (
        select from {rows} as written
        where written.part_id = %(batch_id)s and written.source_id = item.source_id
    )
    and not exists (
        select from {rows} as shown
        where shown.part_id = %(kept_part)s::int8 and shown.source_id = item.source_id and shown.result_id is not null
    )
order by item.ordinal
