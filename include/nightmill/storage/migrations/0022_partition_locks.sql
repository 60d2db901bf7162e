-- Partitions are made, indexed, attached and dropped under a lock that is taken before their standing is read, so that a
-- retry cannot drop what the first try attaches meanwhile. And their names cannot meet: a batch's rows were called as the
-- table of a view named like that (batch 12 of topics, and the view topics_12).

-- rows_12 is no view's table, because a view's name begins with a letter. Rows of batches from before keep their name.
create or replace function nightmill.partition_name(parent text, batch_id bigint) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce(
        (
            select earlier.relname::text
            from pg_catalog.pg_class as earlier
            where earlier.relnamespace = 'nightmill'::regnamespace and earlier.relkind = 'r'
                and earlier.relname = pg_catalog.format('%s_%s', parent, batch_id)
        ),
        pg_catalog.format('%s_%s', case when parent like 'rows\_%' then 'rows' else parent end, batch_id)
    )
$$;

create function nightmill.require_partitioned(parent text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    if not exists (
        select from pg_catalog.pg_class
        where relnamespace = 'nightmill'::regnamespace and relkind = 'p' and relname = parent
    ) then
        raise exception '% has no partitions', parent using errcode = 'NM005';
    end if;
end $$;

-- Where a partition's table stands: absent, unattached or attached (also while it is being detached). An unattached one
-- is held until the transaction ends; an attached one is left alone, because readers use it. The catalogs are asked as
-- they are now (pg_partition_root, to_regclass), whatever snapshot the caller's transaction has.
create function nightmill.hold_partition(child text) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    seen regclass;
begin
    loop
        seen := pg_catalog.to_regclass(pg_catalog.format('nightmill.%I', child));
        if seen is null then
            return 'absent';
        elsif pg_catalog.pg_partition_root(seen) is not null then
            return 'attached';
        end if;
        begin
            execute pg_catalog.format('lock table nightmill.%I in share row exclusive mode', child);
        exception when undefined_table then
            continue; -- dropped while this waited
        end;
        if pg_catalog.to_regclass(pg_catalog.format('nightmill.%I', child)) is not distinct from seen then
            return case when pg_catalog.pg_partition_root(seen) is null then 'unattached' else 'attached' end;
        end if; -- else made anew while this waited
    end loop;
end $$;

create or replace function nightmill.create_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    child text := nightmill.partition_name(parent, batch_id);
    standing text;
begin
    perform nightmill.require_partitioned(parent);
    standing := nightmill.hold_partition(child);
    if standing = 'attached' then
        raise exception '% is attached already', child using errcode = 'NM005';
    elsif standing = 'unattached' then
        execute pg_catalog.format('drop table nightmill.%I', child);
    end if;
    execute pg_catalog.format(
        'create table nightmill.%I (like nightmill.%I including defaults including constraints including generated, '
        'constraint %I check (batch_id is not null and batch_id = %s))',
        child, parent, child || '_batch', batch_id);
    execute pg_catalog.format('grant select, insert on nightmill.%I to nightmill_writer', child);
end $$;

create or replace function nightmill.index_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    child text := nightmill.partition_name(parent, batch_id);
begin
    perform nightmill.require_partitioned(parent);
    -- Two calls make one index.
    execute pg_catalog.format('lock table nightmill.%I in share row exclusive mode', child);
    if exists (
        select from pg_catalog.pg_index
        where indrelid = pg_catalog.to_regclass(pg_catalog.format('nightmill.%I', child))
    ) then
        return;
    end if;
    if parent like 'rows\_%' then
        execute pg_catalog.format('create unique index on nightmill.%I (source_id)', child);
    else
        execute pg_catalog.format('alter table nightmill.%I add primary key %s', child,
            case parent when 'attempt' then '(batch_id, ordinal, provider_batch_id)' else '(batch_id, ordinal)' end);
    end if;
    if parent = 'item' then
        execute pg_catalog.format('create unique index on nightmill.%I (source_id)', child);
        execute pg_catalog.format('create index on nightmill.%I (key)', child);
    end if;
    execute pg_catalog.format('analyze nightmill.%I (batch_id, %s)', child, case parent
        when 'item' then 'ordinal, key, source_id, skip_reason'
        when 'attempt' then 'ordinal, provider_batch_id'
        when 'outcome' then 'ordinal, kind, result_id'
        else 'source_id, result_id' end);
end $$;

create or replace function nightmill.attach_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    child text := nightmill.partition_name(parent, batch_id);
    standing text;
begin
    perform nightmill.require_partitioned(parent);
    standing := nightmill.hold_partition(child);
    if standing = 'absent' then
        raise exception '% was not made', child using errcode = 'NM005';
    elsif standing = 'attached' then
        if pg_catalog.pg_partition_root(pg_catalog.to_regclass(pg_catalog.format('nightmill.%I', child)))
            <> pg_catalog.to_regclass(pg_catalog.format('nightmill.%I', parent))
        then
            raise exception '% is no partition of %', child, parent using errcode = 'NM005';
        end if;
        return;
    end if;
    if parent not like 'rows\_%' then
        perform nightmill.index_partition(parent, batch_id);
    end if;
    execute pg_catalog.format('revoke all on nightmill.%I from nightmill_writer', child);
    execute pg_catalog.format('alter table nightmill.%I attach partition nightmill.%I for values in (%s)', parent,
        child, batch_id);
    execute pg_catalog.format('alter table nightmill.%I drop constraint %I', child, child || '_batch');
end $$;

create or replace function nightmill.drop_detached_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    child text := nightmill.partition_name(parent, batch_id);
    standing text;
begin
    perform nightmill.require_partitioned(parent);
    standing := nightmill.hold_partition(child);
    if standing = 'attached' then
        raise exception '% is still attached', child using errcode = 'NM005';
    elsif standing = 'unattached' then
        execute pg_catalog.format('drop table nightmill.%I', child);
    end if;
end $$;
