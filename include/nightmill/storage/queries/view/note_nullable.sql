update nightmill.view_definition
set nullable = array(select distinct unnest(nullable || %(names)s::text[]) order by 1)
where view_name = %(view_name)s and not nullable @> %(names)s::text[]
