-- The parts of a view, the batches whose rows lie in each, and the publication that hid it (null: it is shown, or never
-- was).
select attached.part_id, coalesce(listed.batch_ids, array[attached.part_id]) as batch_ids, hidden.publish_seq as hidden_by
from (
    select substring(pg_get_expr(relpartbound, pg_class.oid) from '-?\d+')::bigint as part_id
    from pg_inherits
    join pg_class on pg_class.oid = inhrelid
    where inhparent = to_regclass('nightmill.' || quote_ident('rows_' || %(view_name)s))
) as attached
left join lateral (
    select publish_seq
    from nightmill.publication_part
    where publication_part.part_id = attached.part_id
    order by publish_seq desc
    limit 1
) as newest on true
left join lateral (
    select array_agg(batch_id) as batch_ids
    from nightmill.publication_part
    where publication_part.part_id = attached.part_id and publication_part.publish_seq = newest.publish_seq
) as listed on true
left join lateral (
    select publication.publish_seq
    from nightmill.publication
    where publication.view_name = %(view_name)s and publication.publish_seq > newest.publish_seq
    order by publication.publish_seq
    limit 1
) as hidden on true
order by attached.part_id
