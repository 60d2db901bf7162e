with made as (
    insert into nightmill.publication (view_name, batch_id, kind, published_by, approved_by, note, counts, gaps)
    values (%(view_name)s, %(batch_id)s, %(kind)s, %(published_by)s, %(approved_by)s, %(note)s, %(counts)s, %(gaps)s)
    returning publish_seq, published_at
), listed as (
    insert into nightmill.publication_part (publish_seq, part_id, batch_id, interval_start, interval_end, frozen_at,
        counts, gaps, shown_since)
    select made.publish_seq, part.part_id, part.batch_id, part.interval_start, part.interval_end, part.frozen_at,
        part.counts, part.gaps, coalesce(part.shown_since, made.published_at)
    from made, jsonb_to_recordset(%(parts)s::jsonb) as part (part_id bigint, batch_id bigint, interval_start timestamptz,
        interval_end timestamptz, frozen_at timestamptz, counts jsonb, gaps bigint, shown_since timestamptz)
)
select publish_seq from made
