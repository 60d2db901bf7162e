-- The demo's source schema: what a customer's own database would be.
create schema if not exists demo;

create table if not exists demo.distribution_text (
    source_id text primary key,
    source_version text not null,
    distribution text not null,
    version text not null,
    kind text not null check (kind in ('licence', 'readme')),
    file_name text not null,
    body text not null,
    loaded_at timestamptz not null default now()
);
comment on table demo.distribution_text is
    'Licence files and READMEs of the installed Python distributions; source_version determines every other column.';

create table if not exists demo.declared_licence (
    source_id text primary key,
    spdx_ids text[] not null check (cardinality(spdx_ids) > 0)
);
comment on table demo.declared_licence is
    'Acceptable SPDX ids of a licence file, from its distribution''s own metadata. READMEs and bundled parts have none.';

create table if not exists demo.requirement_line (
    source_id text primary key,
    distribution text not null,
    line text not null,
    loaded_at timestamptz not null default now()
);
comment on table demo.requirement_line is
    'What the installed Python distributions require, a line each; source_id is made from the other two.';

create table if not exists demo.parsed_requirement (
    source_id text primary key,
    package text not null,
    extras text[] not null,
    version_range text not null,
    marker text not null,
    is_optional boolean not null
);
comment on table demo.parsed_requirement is
    'What a parser of the packaging standards makes of each requirement line. Lines that it refuses have none.';

do $$
begin
    if exists (select from pg_roles where rolname = 'nightmill_demo') then
        grant usage on schema demo to nightmill_demo;
        grant select on demo.distribution_text, demo.declared_licence to nightmill_demo;
        grant select on demo.requirement_line, demo.parsed_requirement to nightmill_demo;
    end if;
end
$$;
