select attname, col_description(attrelid, attnum)
from pg_attribute
where attrelid = to_regclass('results.' || quote_ident(%(view)s)) and attnum > 0
