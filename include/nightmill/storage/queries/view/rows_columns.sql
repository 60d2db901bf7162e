-- Only of a view's own table: a plain one of this name holds the rows of a batch of another view.
select attname, format_type(atttypid, atttypmod)
from pg_attribute
join pg_class on pg_class.oid = attrelid and relkind = 'p'
where attrelid = to_regclass('nightmill.' || quote_ident(%(table)s)) and attnum > 0 and not attisdropped
order by attnum
