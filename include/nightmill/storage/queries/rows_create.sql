create table {rows} (
    batch_id bigint not null,
    ordinal bigint not null,
    source_id text not null,
    source_version text not null,
    tenant text not null,
    domain text not null,
    result_id bigint not null,
    reused boolean not null,
    model text not null,
    prompt_version text not null,
    answered_at timestamptz not null{typed}
) partition by list (batch_id);

create trigger guard_settling after insert on {rows}
    referencing new table as written for each statement execute function nightmill.guard_settling();

grant select, insert on {rows} to nightmill_writer;
