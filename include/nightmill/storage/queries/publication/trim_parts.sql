-- Lists that nobody needs: of publications older than what is kept, but the newest one of each part that still exists.
with trimmed as (
    delete from nightmill.publication_part as listed
    using nightmill.publication
    where publication.publish_seq = listed.publish_seq and publication.view_name = %(view_name)s
        and listed.publish_seq < %(oldest_kept)s
        and (listed.part_id <> all (%(attached)s::bigint[]) or exists (
            select from nightmill.publication_part as later
            where later.part_id = listed.part_id and later.publish_seq > listed.publish_seq))
    returning 1
)
select count(*) from trimmed
