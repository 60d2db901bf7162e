with made as (
    insert into nightmill.publication (view_name, batch_id, kind, published_by, approved_by, note, counts, gaps)
    values (%(view_name)s, %(batch_id)s, %(kind)s, %(published_by)s, %(approved_by)s, %(note)s, %(counts)s, %(gaps)s)
    returning publish_seq, published_at
), listed as (
    insert into nightmill.publication_part (publish_seq, part_id, batch_id, interval_start, interval_end, frozen_at,
        counts, gaps, shown_since)
    select made.publish_seq, part.part_id, part.batch_id, part.interval_start, part.interval_end, part.frozen_at,
        part.counts, part.gaps, coalesce(part.shown_since, made.published_at)
    from made, unnest(%(part_ids)s::int8[], %(batch_ids)s::int8[], %(starts)s::timestamptz[], %(ends)s::timestamptz[],
        %(frozen_ats)s::timestamptz[], %(part_counts)s::jsonb[], %(part_gaps)s::int8[], %(since)s::timestamptz[])
        as part (part_id, batch_id, interval_start, interval_end, frozen_at, counts, gaps, shown_since)
)
select publish_seq from made
