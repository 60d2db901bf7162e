select view_definition.view_name, view_definition.job, published.batch_id, published.published_at
from nightmill.view_definition
left join nightmill.published on published.view_name = view_definition.view_name
where view_definition.job <> all (%(jobs)s::text[])
    and to_regclass('results.' || quote_ident(view_definition.view_name)) is not null
order by view_definition.view_name
