delete from pg_temp.reusable where ordinal = any(%(ordinals)s)
