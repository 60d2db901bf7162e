-- `whole`: maintenance has not trimmed its list of parts.
select publication.publish_seq, publication.kind, publication.batch_id, publication.published_at,
    publication.published_by, publication.approved_by, publication.note, publication.counts, publication.gaps,
    coalesce(published.publish_seq = publication.publish_seq, false) as shown,
    mine.interval_start, mine.interval_end, listed.intervals, coalesce(listed.batch_ids, '{}') as batch_ids,
    coalesce(listed.part_ids, '{}') as part_ids,
    (select coalesce(sum(items::bigint), 0) from jsonb_each_text(publication.counts) as kept (bucket, items))
    = (select coalesce(sum(items::bigint), 0)
        from nightmill.publication_part, jsonb_each_text(publication_part.counts) as kept (bucket, items)
        where publication_part.publish_seq = publication.publish_seq) as whole
from nightmill.publication
left join nightmill.published on published.view_name = publication.view_name
left join nightmill.publication_part as mine
    on mine.publish_seq = publication.publish_seq and mine.batch_id = publication.batch_id
cross join lateral (
    select count(*) filter (where interval_start is not null) as intervals,
        array_agg(batch_id order by batch_id) as batch_ids, array_agg(distinct part_id) as part_ids
    from nightmill.publication_part
    where publication_part.publish_seq = publication.publish_seq
) as listed
where publication.view_name = %(view_name)s
order by publication.publish_seq desc
limit %(most)s
