-- A read that does not ask for published_at joins nothing: publish_seq and batch_id are the key of what is joined.
{rows} as rows
left join nightmill.publication_part as listed on listed.batch_id = rows.batch_id
    and listed.publish_seq = (select published.publish_seq from nightmill.published where published.view_name = {name})
