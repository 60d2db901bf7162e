-- Settling in fewer passes. Result ids are drawn first, so that outcomes and rows need no join by key with what was
-- stored; partitions can be indexed before the short transaction that attaches them.

grant usage on sequence nightmill.result_result_id_seq to nightmill_writer;

-- As before, with one look at the written rows instead of two.
create or replace function nightmill.guard_settling() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
declare
    touched bigint;
    lowest bigint;
    highest bigint;
    state_now text;
    planned bigint;
begin
    for touched, lowest, highest in select batch_id, min(ordinal), max(ordinal) from written group by batch_id loop
        perform nightmill.fence_shared(touched);
        select state, item_count into state_now, planned from nightmill.batch where batch_id = touched;
        if state_now is null or state_now not in ('PLANNING', 'QUEUED', 'RUNNING', 'BLOCKED') then
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

-- Indexes an unattached partition, filled or not. Indexed already is fine.
create function nightmill.index_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog as $$
declare
    child text := nightmill.partition_name(parent, batch_id);
begin
    if exists (select from pg_index where indrelid = to_regclass(format('nightmill.%I', child))) then
        return;
    end if;
    execute format('alter table nightmill.%I add primary key %s', child,
        case parent when 'attempt' then '(batch_id, ordinal, provider_batch_id)' else '(batch_id, ordinal)' end);
    if parent = 'item' then
        execute format('create unique index on nightmill.%I (source_id)', child);
        execute format('create index on nightmill.%I (key)', child);
    elsif parent like 'rows\_%' then
        execute format('create index on nightmill.%I (source_id)', child);
    end if;
    execute format('analyze nightmill.%I', child);
end $$;

create or replace function nightmill.attach_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog as $$
declare
    child text := nightmill.partition_name(parent, batch_id);
begin
    if exists (select from pg_inherits where inhrelid = to_regclass(format('nightmill.%I', child))) then
        return;
    end if;
    perform nightmill.index_partition(parent, batch_id);
    execute format('revoke all on nightmill.%I from nightmill_writer', child);
    execute format('alter table nightmill.%I attach partition nightmill.%I for values in (%s)', parent, child,
        batch_id);
end $$;

revoke all on function nightmill.index_partition(text, bigint) from public;
grant execute on function nightmill.index_partition(text, bigint) to nightmill_writer;
