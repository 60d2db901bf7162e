part_id = (select published.part_id from nightmill.published where published.view_name = {name})
