-- Views that exist as older versions made them, and such as somebody changed.
select view_definition.view_name, view_definition.job
from nightmill.view_definition
join pg_class as shown on shown.oid = to_regclass('results.' || quote_ident(view_definition.view_name))
join pg_class as held on held.oid = to_regclass('nightmill.' || quote_ident('rows_' || view_definition.view_name))
where shown.relowner <> 'nightmill_view_owner'::regrole or not held.relrowsecurity
    or not exists (select from pg_policy where polrelid = held.oid and polname = 'published')
order by view_definition.view_name
