part_id in (
    select publication_part.part_id
    from nightmill.publication_part
    join nightmill.published using (publish_seq)
    where published.view_name = {name}
)
