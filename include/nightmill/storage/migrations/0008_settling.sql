-- Settling in fewer passes. Result ids are drawn first, so that outcomes and rows need no join by key with what was
-- stored; partitions can be indexed before the short transaction that attaches them.

grant usage on sequence nightmill.result_result_id_seq to nightmill_writer;

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
