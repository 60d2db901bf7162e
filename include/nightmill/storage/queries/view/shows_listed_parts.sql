part_id in (
    select publication_part.part_id
    from nightmill.publication_part
    where publication_part.publish_seq = (
        select published.publish_seq from nightmill.published where published.view_name = {name}
    )
)
