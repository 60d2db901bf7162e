create temporary table arriving_requirement (
    source_id text primary key,
    distribution text not null,
    line text not null,
    parsed boolean not null,
    package text,
    extras text[],
    version_range text,
    marker text,
    is_optional boolean
) on commit drop;
