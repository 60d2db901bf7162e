-- As before, and one thing more: an attached partition needs no check of its own batch id beside its bound. Readers pay
-- for each check of each attached batch when they plan, writers when they write. Partitions that have it keep it.

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
    execute format('alter table nightmill.%I drop constraint %I', child, child || '_batch');
end $$;
