-- One index for a batch's rows instead of two: readers look for source ids, which are unique in a batch, so the same
-- index refuses a row that comes twice. Partitions that have both keep them.

create or replace function nightmill.index_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog as $$
declare
    child text := nightmill.partition_name(parent, batch_id);
begin
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
    execute format('analyze nightmill.%I', child);
end $$;
