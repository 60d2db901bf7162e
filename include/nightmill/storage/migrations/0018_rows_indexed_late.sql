-- A batch's rows are indexed when all of them are there, which costs less than an entry put in with each row, and no
-- reader sees them before. Until then their outcomes, which are written with them, refuse what would come twice.
-- Partitions that have their index keep it. Statistics are gathered only of the columns that queries join by: a sample is
-- sorted for each.

create or replace function nightmill.index_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog as $$
declare
    child text := nightmill.partition_name(parent, batch_id);
begin
    execute format('lock table nightmill.%I in share row exclusive mode', child); -- two calls make one index
    if exists (select from pg_index where indrelid = to_regclass(format('nightmill.%I', child))) then
        return;
    end if;
    if parent like 'rows\_%' then
        execute format('create unique index on nightmill.%I (source_id)', child);
    else
        execute format('alter table nightmill.%I add primary key %s', child,
            case parent when 'attempt' then '(batch_id, ordinal, provider_batch_id)' else '(batch_id, ordinal)' end);
    end if;
    if parent = 'item' then
        execute format('create unique index on nightmill.%I (source_id)', child);
        execute format('create index on nightmill.%I (key)', child);
    end if;
    execute format('analyze nightmill.%I (batch_id, %s)', child, case parent
        when 'item' then 'ordinal, key, source_id, skip_reason'
        when 'attempt' then 'ordinal, provider_batch_id'
        when 'outcome' then 'ordinal, kind, result_id'
        else 'source_id, result_id' end);
end $$;

create or replace function nightmill.attach_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog as $$
declare
    child text := nightmill.partition_name(parent, batch_id);
begin
    if exists (select from pg_inherits where inhrelid = to_regclass(format('nightmill.%I', child))) then
        return;
    end if;
    if parent not like 'rows\_%' then
        perform nightmill.index_partition(parent, batch_id);
    end if;
    execute format('revoke all on nightmill.%I from nightmill_writer', child);
    execute format('alter table nightmill.%I attach partition nightmill.%I for values in (%s)', parent, child,
        batch_id);
    execute format('alter table nightmill.%I drop constraint %I', child, child || '_batch');
end $$;

-- As before; which provider batches carried attempts is asked only where it decides.
create or replace function nightmill.guard_settling() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
declare
    touched bigint;
    lowest bigint;
    highest bigint;
    state_now text;
    planned bigint;
    accepts boolean;
begin
    for touched, lowest, highest in select batch_id, min(ordinal), max(ordinal) from written group by batch_id loop
        perform nightmill.fence_shared(touched);
        select state, item_count into state_now, planned from nightmill.batch where batch_id = touched;
        accepts := coalesce(state_now in ('PLANNING', 'QUEUED', 'RUNNING', 'BLOCKED'), false);
        if state_now = 'CANCELLED' and tg_table_name = 'attempt' then
            select bool_and(carrier.state is not distinct from 'ENDED') into accepts
            from (select distinct provider_batch_id from written where batch_id = touched) as carried
            left join nightmill.provider_batch as carrier using (provider_batch_id);
        end if;
        if not accepts then
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
