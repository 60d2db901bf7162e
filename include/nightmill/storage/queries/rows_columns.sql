select attname, format_type(atttypid, atttypmod)
from pg_attribute
where attrelid = to_regclass('nightmill.' || quote_ident(%(table)s)) and attnum > 0 and not attisdropped
order by attnum
