-- Cancelling and maintenance: what a cancelled batch has at the provider is still collected, for its answers and costs.

-- As before, and one thing more: attempts of a CANCELLED batch may still come in from its ended provider batches,
-- because they were paid. They settle nothing: outcomes and staging rows stay refused. The written rows are looked at
-- once instead of twice.
create or replace function nightmill.guard_settling() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
declare
    touched bigint;
    lowest bigint;
    highest bigint;
    state_now text;
    planned bigint;
    collects_only boolean := false;
begin
    if tg_table_name = 'attempt' then
        select bool_and(one.state is not distinct from 'ENDED') into collects_only
        from (select distinct provider_batch_id from written) as carried
        left join nightmill.provider_batch as one using (provider_batch_id);
    end if;
    for touched, lowest, highest in select batch_id, min(ordinal), max(ordinal) from written group by batch_id loop
        perform nightmill.fence_shared(touched);
        select state, item_count into state_now, planned from nightmill.batch where batch_id = touched;
        if state_now is null or state_now not in ('PLANNING', 'QUEUED', 'RUNNING', 'BLOCKED')
            and not (state_now = 'CANCELLED' and tg_table_name = 'attempt' and collects_only)
        then
            raise exception 'batch % is %: nothing can be settled in it', touched, coalesce(state_now, 'unknown')
                using errcode = 'NM004';
        end if;
        if lowest < 0 or highest >= planned then
            raise exception 'batch %: an ordinal lies outside its manifest of % items', touched, planned
                using errcode = 'NM004';
        end if;
    end loop;
    return null;
end $$;

alter table nightmill.quarantine add column why text;
alter table nightmill.batch add column retired_at timestamptz;
comment on column nightmill.batch.retired_at is
    'When retention dropped its partitions, payloads and dead letters; the row itself stays';
alter table nightmill.provider_batch add column evidence_deleted_at timestamptz;

create table nightmill.maintenance_action (
    action_id bigint generated always as identity primary key,
    sweep text not null,
    batch_id bigint,
    what text not null,
    alert boolean not null,
    done_at timestamptz not null default clock_timestamp()
);
comment on table nightmill.maintenance_action is 'What maintenance did; alert = a person should look';
create table nightmill.maintenance_sweep (
    sweep text primary key,
    ran_at timestamptz not null default clock_timestamp()
);
comment on table nightmill.maintenance_sweep is 'When each sweep of maintenance last came to its end';
grant select, insert, update on nightmill.maintenance_sweep to nightmill_writer;
grant select on nightmill.maintenance_sweep to nightmill_console;
grant select, insert on nightmill.maintenance_action to nightmill_writer;
grant select on nightmill.maintenance_action to nightmill_console;
