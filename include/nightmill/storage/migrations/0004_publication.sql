-- Gates, and what each view shows.

create table nightmill.gate_verdict (
    verdict_id bigint generated always as identity primary key,
    batch_id bigint not null references nightmill.batch,
    generation int not null,
    gate text not null,
    passed boolean not null,
    details jsonb not null,
    config_hash text not null,
    decided_at timestamptz not null default clock_timestamp(),
    constraint gate_known check (gate in ('completion', 'check_staging', 'compare', 'approve'))
);
create index gate_verdict_batch on nightmill.gate_verdict (batch_id, gate, verdict_id desc);

create table nightmill.publication (
    publish_seq bigint generated always as identity primary key,
    view_name text not null,
    batch_id bigint not null references nightmill.batch,
    kind text not null check (kind in ('publish', 'rollback')),
    published_at timestamptz not null default clock_timestamp(),
    published_by text not null,
    counts jsonb not null,
    gaps bigint not null
);
create index publication_view on nightmill.publication (view_name, publish_seq desc);

create table nightmill.published (
    view_name text primary key,
    batch_id bigint not null references nightmill.batch,
    publish_seq bigint not null references nightmill.publication,
    published_at timestamptz not null,
    gaps bigint not null,
    held boolean not null default false
);
comment on table nightmill.published is 'Which batch each view shows, since when, with how many gaps';

-- A view can only show a batch that went through publish, and only one of its own.
create function nightmill.guard_published() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    if not exists (
        select from nightmill.batch
        where batch_id = new.batch_id and view_name = new.view_name and state = 'PUBLISHED'
    ) then
        raise exception 'view % cannot show batch %, which is not a published batch of it', new.view_name, new.batch_id
            using errcode = 'NM001';
    end if;
    return new;
end $$;
create trigger guard_published before insert or update on nightmill.published
    for each row execute function nightmill.guard_published();

create table nightmill.view_definition (
    view_name text primary key,
    job text not null,
    columns jsonb not null,
    applied_at timestamptz not null default clock_timestamp()
);

-- Where each item of a batch stands: read only this for counts, gates and metrics. An item without a row is unsettled.
create view nightmill.item_bucket as
select batch_id, ordinal, kind as bucket, result_id, class, code, settled_at
from nightmill.outcome;
