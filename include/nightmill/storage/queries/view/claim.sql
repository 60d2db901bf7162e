insert into nightmill.view_definition (view_name, job, columns, mode)
values (%(view_name)s, %(job)s, %(columns)s, %(mode)s)
on conflict (view_name) do update set
    columns = case when view_definition.job = excluded.job then excluded.columns else view_definition.columns end,
    applied_at = clock_timestamp()
returning job
