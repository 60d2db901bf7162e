-- Views that exist as they were made before they had a barrier, and such as somebody made without one.
select view_definition.view_name, view_definition.job
from nightmill.view_definition
join pg_class on pg_class.oid = to_regclass('results.' || quote_ident(view_definition.view_name))
where not coalesce(pg_class.reloptions @> array['security_barrier=true'], false)
order by view_definition.view_name
