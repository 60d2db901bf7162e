-- What a rollback takes back stays back: a hold on the view, or on one interval of it, until a person lifts it.

create table nightmill.hold (
    hold_id bigint generated always as identity primary key,
    view_name text not null,
    interval_start timestamptz,
    interval_end timestamptz,
    publish_seq bigint not null references nightmill.publication,
    taken_back bigint[] not null,
    reason text,
    held_at timestamptz not null default clock_timestamp(),
    held_by text not null,
    request text unique,
    revoke boolean not null default false,
    revoked bigint,
    released_at timestamptz,
    released_by text,
    constraint view_or_interval check ((interval_start is null) = (interval_end is null)),
    constraint released_by_somebody check ((released_at is null) = (released_by is null)),
    constraint revoked_before_released check (released_at is null or not revoke or revoked is not null)
);
create index hold_open on nightmill.hold (view_name) where released_at is null;
create index hold_publication on nightmill.hold (view_name, publish_seq);
comment on table nightmill.hold is
    'What a rollback took back, and until when runs must not publish: the whole view, or the interval';
comment on column nightmill.hold.publish_seq is 'The publication of the rollback';
comment on column nightmill.hold.request is 'The run that asked for it: its retry does nothing twice';
comment on column nightmill.hold.revoke is 'Whether its answers are to be asked for again; revoked: how many they were';

insert into nightmill.hold (view_name, publish_seq, taken_back, held_by)
select view_name, publish_seq, '{}', 'nightmill_owner' from nightmill.published where held;
alter table nightmill.published drop column held;

create function nightmill.guard_hold() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    if tg_op = 'UPDATE' then
        if old.released_at is not null then
            raise exception 'the hold % of view % was released before', old.hold_id, old.view_name
                using errcode = 'NM001';
        end if;
    elsif new.released_at is not null or not exists (
        select from nightmill.publication
        where publish_seq = new.publish_seq and view_name = new.view_name and kind = 'rollback'
    ) then
        raise exception 'a hold of view % needs a rollback of it', new.view_name using errcode = 'NM001';
    end if;
    return new;
end $$;
create trigger guard_hold before insert or update on nightmill.hold
    for each row execute function nightmill.guard_hold();

alter table nightmill.result add column revoked_at timestamptz;
comment on column nightmill.result.revoked_at is 'Since when no run reuses it, because a rollback revoked it';

grant select on nightmill.hold to nightmill_writer, nightmill_reader, nightmill_console;
grant insert on nightmill.hold to nightmill_writer;
grant update (revoked, released_at, released_by) on nightmill.hold to nightmill_writer;
grant update (revoked_at) on nightmill.result to nightmill_writer;
grant select on nightmill.view_definition to nightmill_console;
