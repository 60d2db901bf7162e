-- One list partition per batch of item, attempt, outcome and rows_<view>. A partition is made beside its parent and
-- then attached: ATTACH waits for no reader and blocks none; CREATE ... PARTITION OF would do both.

create function nightmill.partition_name(parent text, batch_id bigint) returns text
language sql immutable as $$ select format('%s_%s', parent, batch_id) $$;

-- Makes the table for a batch, not attached and without indexes, writable by the caller's role. A left-over of a
-- killed freeze is dropped first; an attached one is never touched.
create function nightmill.create_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog as $$
declare
    child text := nightmill.partition_name(parent, batch_id);
begin
    if parent not in ('item', 'attempt', 'outcome') and parent !~ '^rows_[a-z0-9_]+$' then
        raise exception '% has no partitions', parent using errcode = 'NM005';
    end if;
    if exists (select from pg_inherits where inhrelid = to_regclass(format('nightmill.%I', child))) then
        raise exception '% is attached already', child using errcode = 'NM005';
    end if;
    execute format('drop table if exists nightmill.%I', child);
    execute format(
        'create table nightmill.%I (like nightmill.%I including defaults including constraints including generated, '
        'constraint %I check (batch_id is not null and batch_id = %s))',
        child, parent, child || '_batch', batch_id);
    execute format('grant select, insert on nightmill.%I to nightmill_writer', child);
end $$;

create function nightmill.attach_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog as $$
declare
    child text := nightmill.partition_name(parent, batch_id);
begin
    if exists (select from pg_inherits where inhrelid = to_regclass(format('nightmill.%I', child))) then
        return;
    end if;
    execute format('alter table nightmill.%I add primary key %s', child,
        case parent when 'attempt' then '(batch_id, ordinal, provider_batch_id)' else '(batch_id, ordinal)' end);
    if parent = 'item' then
        execute format('create unique index on nightmill.%I (source_id)', child);
        execute format('create index on nightmill.%I (key)', child);
        execute format('analyze nightmill.%I', child);
    elsif parent like 'rows\_%' then
        execute format('create index on nightmill.%I (source_id)', child);
    end if;
    execute format('revoke all on nightmill.%I from nightmill_writer', child);
    execute format('alter table nightmill.%I attach partition nightmill.%I for values in (%s)', parent, child,
        batch_id);
end $$;

create function nightmill.drop_detached_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog as $$
declare
    child text := nightmill.partition_name(parent, batch_id);
begin
    if exists (select from pg_inherits where inhrelid = to_regclass(format('nightmill.%I', child))) then
        raise exception '% is still attached', child using errcode = 'NM005';
    end if;
    execute format('drop table if exists nightmill.%I', child);
end $$;

revoke all on function nightmill.create_partition(text, bigint), nightmill.attach_partition(text, bigint),
    nightmill.drop_detached_partition(text, bigint) from public;
grant execute on function nightmill.create_partition(text, bigint), nightmill.attach_partition(text, bigint)
    to nightmill_writer;
