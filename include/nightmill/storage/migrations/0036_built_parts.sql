-- Parts that are built before they are shown: the next one of a view by key, and several merged into one.

create table nightmill.part_build (
    part_id bigint primary key,
    view_name text not null references nightmill.view_definition,
    batch_id bigint references nightmill.batch,
    begun_at timestamptz not null default clock_timestamp()
);
comment on table nightmill.part_build is
    'Parts that are filled beside their view, for a batch or (null) by maintenance; what a killed builder left is dropped';

create table nightmill.deleted_key (
    part_id bigint not null,
    source_id text not null,
    batch_id bigint not null,
    primary key (part_id, source_id)
);
comment on table nightmill.deleted_key is
    'Source ids that a view by key does not show, by part, and the batch that deleted each: an older one brings none back';

grant select, insert, delete on nightmill.part_build, nightmill.deleted_key to nightmill_writer;

-- The owner's default privileges do not reach partitions that are filled by a run.
create or replace function nightmill.create_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    child text := nightmill.partition_name(parent, batch_id);
    standing text;
    bound text := pg_catalog.format('batch_id is not null and batch_id = %s', batch_id);
begin
    perform nightmill.require_partitioned(parent);
    standing := nightmill.hold_partition(child);
    if standing = 'attached' then
        raise exception '% is attached already', child using errcode = 'NM005';
    elsif standing = 'unattached' then
        execute pg_catalog.format('drop table nightmill.%I', child);
    end if;
    if parent like 'rows\_%' then
        bound := pg_catalog.format('part_id is not null and part_id = %s', batch_id)
            || case when batch_id > 0 then ' and ' || bound else '' end;
    end if;
    execute pg_catalog.format(
        'create table nightmill.%I (like nightmill.%I including defaults including constraints including generated, '
        'constraint %I check (%s))',
        child, parent, child || '_batch', bound);
    execute pg_catalog.format('grant select, insert on nightmill.%I to nightmill_writer', child);
end $$;

-- Drops a part that was built and never shown. A builder that still fills it is stopped by that.
create function nightmill.drop_built_part(parent text, part_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    child text := nightmill.partition_name(parent, part_id);
begin
    perform nightmill.require_partitioned(parent);
    if part_id >= 0 then
        raise exception 'part % is a batch''s own', part_id using errcode = 'NM005';
    end if;
    if nightmill.hold_partition(child) = 'unattached' then
        execute pg_catalog.format('drop table nightmill.%I', child);
    end if;
end $$;
revoke all on function nightmill.drop_built_part(text, bigint) from public;
grant execute on function nightmill.drop_built_part(text, bigint) to nightmill_writer;

-- A source id stands once in a batch, and once in what a view by key shows; in merged intervals once for each of them.
create or replace function nightmill.index_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    child text := nightmill.partition_name(parent, batch_id);
    merged boolean := batch_id < 0 and exists (
        select from nightmill.view_definition
        where 'rows_' || view_name = parent and mode = 'by_interval');
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
        execute pg_catalog.format('create unique index on nightmill.%I (%s)', child,
            case when merged then 'source_id, batch_id' else 'source_id' end);
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

-- A part is retired once the flip that hid it is older than every snapshot.
alter table nightmill.publication add column flipped_by xid8 not null default pg_current_xact_id();
comment on column nightmill.publication.flipped_by is 'The transaction of the flip: readers whose snapshot is older see what was shown before';

create index publication_part_by_part on nightmill.publication_part (part_id, publish_seq);

-- A publication can only list what went through publish, only of its own view, and only parts that exist.
create or replace function nightmill.guard_publication_part() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
    strange record;
begin
    for strange in
        select listed.part_id, listed.batch_id, publication.view_name
        from listed
        left join nightmill.publication using (publish_seq)
        left join nightmill.batch on batch.batch_id = listed.batch_id
        where publication.view_name is null or batch.view_name is distinct from publication.view_name
            or batch.state is distinct from 'PUBLISHED'
            or (listed.part_id <> listed.batch_id and listed.part_id >= 0)
    loop
        raise exception 'view % cannot show part % of batch %: it is no part of a published batch of it',
            strange.view_name, strange.part_id, strange.batch_id using errcode = 'NM001';
    end loop;
    for strange in
        select once.part_id, once.view_name
        from (select distinct part_id, view_name from listed join nightmill.publication using (publish_seq)) as once
        where not exists (
            select from pg_catalog.pg_inherits
            where inhrelid = pg_catalog.to_regclass('nightmill.' || pg_catalog.quote_ident(
                    nightmill.partition_name('rows_' || once.view_name, once.part_id)))
                and inhparent = pg_catalog.to_regclass('nightmill.' || pg_catalog.quote_ident('rows_' || once.view_name))
                and not inhdetachpending)
    loop
        raise exception 'view % cannot show part %: its rows are gone', strange.view_name, strange.part_id
            using errcode = 'NM001';
    end loop;
    return null;
end $$;
