create temporary table arriving_text (
    source_id text primary key,
    source_version text not null,
    distribution text not null,
    version text not null,
    kind text not null,
    file_name text not null,
    body text not null,
    spdx_ids text[] not null
) on commit drop;
