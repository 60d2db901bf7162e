select attname
from pg_attribute
where attrelid = to_regclass('results.' || quote_ident(%(view)s)) and attnum > 0
order by attnum
