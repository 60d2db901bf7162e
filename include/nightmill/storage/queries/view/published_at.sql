(select published.published_at from nightmill.published where published.view_name = {name}) as published_at
