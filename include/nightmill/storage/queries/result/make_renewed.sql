create temporary table if not exists renewed (
    result_id int8 not null,
    citations jsonb not null
) on commit delete rows
