-- Not null are only the columns that readers join by: planning a read looks at each of them in each attached partition.
-- The others are filled from columns that are never null, but for rows that stand in for gaps.
create table {rows} (
    part_id bigint not null,
    batch_id bigint not null,
    ordinal bigint,
    source_id text not null,
    source_version text,
    tenant text,
    domain text,
    result_id bigint,
    reused boolean,
    model text,
    prompt_version text,
    answered_at timestamptz,
    citations jsonb,
    data_interval_start timestamptz,
    data_interval_end timestamptz,
    gap_reason text{typed}
) partition by list (part_id);

create trigger guard_settling after insert on {rows}
    referencing new table as written for each statement execute function nightmill.guard_settling();

grant select, insert on {rows} to nightmill_writer;
