create temporary table if not exists reusable (
    ordinal int8 primary key,
    result_id int8 not null,
    outdated bool not null
)
