-- `whole`: maintenance has not trimmed its list of parts.
select publish_seq, kind, published_at,
    (select coalesce(sum(items::bigint), 0) from jsonb_each_text(publication.counts) as kept (bucket, items))
    = (select coalesce(sum(items::bigint), 0)
        from nightmill.publication_part, jsonb_each_text(publication_part.counts) as kept (bucket, items)
        where publication_part.publish_seq = publication.publish_seq) as whole
from nightmill.publication
where view_name = %(view_name)s and publish_seq = %(publish_seq)s
