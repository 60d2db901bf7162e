create temporary table if not exists reusable (
    ordinal int8 not null,
    domain text not null,
    result_id int8 not null,
    outdated bool not null
)
