-- What a view shows is a publication: a list of parts. A part is the rows of one batch, and bears its number, or rows of
-- several that were merged: those count down from -1. So rows tables are partitioned by part instead of by batch.

create sequence nightmill.merged_part increment -1 start -1;

alter table nightmill.publication
    alter column batch_id drop not null,
    drop constraint publication_kind_check,
    add constraint publication_kind_known check (kind in ('publish', 'rollback', 'merge', 'retention')),
    add column approved_by text,
    add column note text;

-- What it refers to is checked by its guard, at once for all rows: hundreds of them are added by each publication.
create table nightmill.publication_part (
    publish_seq bigint not null,
    part_id bigint not null,
    batch_id bigint not null,
    interval_start timestamptz,
    interval_end timestamptz,
    frozen_at timestamptz not null,
    counts jsonb not null,
    gaps bigint not null,
    shown_since timestamptz not null,
    primary key (publish_seq, batch_id)
);
comment on table nightmill.publication_part is
    'What each publication shows: the parts, and the batches whose rows lie in each; a merged part has several';

insert into nightmill.publication_part (publish_seq, part_id, batch_id, interval_start, interval_end, frozen_at, counts,
    gaps, shown_since)
select publication.publish_seq, batch_id, batch_id, batch.data_interval_start, batch.data_interval_end, batch.frozen_at,
    publication.counts, publication.gaps, publication.published_at
from nightmill.publication
join nightmill.batch using (batch_id);

alter table nightmill.view_definition
    add column mode text not null default 'replace'
    constraint mode_known check (mode in ('replace', 'by_interval', 'by_key'));

alter table nightmill.published
    add column mode text not null default 'replace',
    add column part_id bigint;
update nightmill.published set part_id = batch_id;
alter table nightmill.published
    add constraint one_part_or_intervals check (case mode
        when 'by_interval' then part_id is null
        when 'replace' then part_id is not null
        when 'by_key' then part_id is not null
        else false end);
comment on table nightmill.published is 'Which publication each view shows, since when, with how many gaps';

-- A publication can only list what went through publish, and only of its own view.
create function nightmill.guard_publication_part() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
    strange record;
begin
    for strange in
        select listed.part_id, listed.batch_id, publication.view_name
        from (select distinct publish_seq, part_id, batch_id from listed) as listed
        left join nightmill.publication using (publish_seq)
        left join nightmill.batch on batch.batch_id = listed.batch_id
        where publication.view_name is null or batch.view_name is distinct from publication.view_name or batch.state is distinct from 'PUBLISHED'
            or (listed.part_id <> listed.batch_id and (listed.part_id >= 0 or not exists (
                select from pg_catalog.pg_inherits
                where inhparent = pg_catalog.to_regclass(
                        'nightmill.' || pg_catalog.quote_ident('rows_' || publication.view_name))
                    and inhrelid = pg_catalog.to_regclass('nightmill.' || pg_catalog.quote_ident(
                        nightmill.partition_name('rows_' || publication.view_name, listed.part_id))))))
    loop
        raise exception 'view % cannot show part % of batch %: it is no part of a published batch of it',
            strange.view_name, strange.part_id, strange.batch_id using errcode = 'NM001';
    end loop;
    return null;
end $$;
create trigger guard_publication_part after insert on nightmill.publication_part
    referencing new table as listed for each statement execute function nightmill.guard_publication_part();

create or replace function nightmill.guard_published() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    if not exists (
        select from nightmill.batch
        where batch_id = new.batch_id and view_name = new.view_name and state = 'PUBLISHED'
    ) then
        raise exception 'view % cannot show batch %, which is not a published batch of it', new.view_name, new.batch_id
            using errcode = 'NM001';
    end if;
    if not exists (
        select from nightmill.publication where publish_seq = new.publish_seq and view_name = new.view_name
    ) then
        raise exception 'view % cannot show publication %, which is not one of it', new.view_name, new.publish_seq
            using errcode = 'NM001';
    end if;
    if new.part_id is not null and not exists (
        select from nightmill.publication_part where publish_seq = new.publish_seq and part_id = new.part_id
    ) then
        raise exception 'publication % does not list part %', new.publish_seq, new.part_id using errcode = 'NM001';
    end if;
    return new;
end $$;

-- A batch settles into its own part only.
create or replace function nightmill.guard_settling() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
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
    if tg_table_name not in ('outcome', 'attempt') then
        if exists (select from written where part_id <> batch_id) then
            raise exception 'a row lies in a part of another batch than its own' using errcode = 'NM004';
        end if;
    end if;
    return null;
end $$;

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
    if batch_id > 0 then
        execute pg_catalog.format('grant select, insert on nightmill.%I to nightmill_writer', child);
    end if;
end $$;

-- The tables of before: each partition gets its part and interval as defaults of new columns, which writes no row, and
-- goes to a table that is partitioned by part.
do $$
declare
    parent text;
    shown text;
    child record;
begin
    for parent in
        select relname from pg_class
        where relnamespace = 'nightmill'::regnamespace and relkind = 'p' and relname like 'rows\_%'
    loop
        shown := pg_get_viewdef(to_regclass('results.' || quote_ident(substr(parent, 6))));
        execute format('alter table nightmill.%I rename to before_parts', parent);
        execute format('create table nightmill.%I (like nightmill.before_parts including defaults, '
            'part_id bigint not null, data_interval_start timestamptz, data_interval_end timestamptz) '
            'partition by list (part_id)', parent);
        for child in
            select inhrelid::regclass as held, batch_id, data_interval_start, data_interval_end
            from pg_inherits
            join pg_class on pg_class.oid = inhrelid
            join nightmill.batch
                on batch_id = substring(pg_get_expr(relpartbound, pg_class.oid) from '\d+')::bigint
            where inhparent = 'nightmill.before_parts'::regclass and not inhdetachpending
        loop
            execute format('alter table nightmill.before_parts detach partition %s', child.held);
            execute format('alter table %s add column part_id bigint not null default %s, '
                'add column data_interval_start timestamptz default %L, '
                'add column data_interval_end timestamptz default %L',
                child.held, child.batch_id, child.data_interval_start, child.data_interval_end);
            execute format('alter table nightmill.%I attach partition %s for values in (%s)', parent, child.held,
                child.batch_id);
        end loop;
        execute format('create trigger guard_settling after insert on nightmill.%I referencing new table as written '
            'for each statement execute function nightmill.guard_settling()', parent);
        execute format('grant select, insert on nightmill.%I to nightmill_writer', parent);
        execute format('grant select on nightmill.%I to nightmill_view_owner', parent);
        execute format('alter table nightmill.%I enable row level security', parent);
        execute format('create policy published on nightmill.%I for select to nightmill_view_owner using '
            '(part_id = (select published.part_id from nightmill.published where published.view_name = %L))',
            parent, substr(parent, 6));
        execute format('create policy written on nightmill.%I to nightmill_writer using (true) with check (true)',
            parent);
        if shown is not null then
            execute format('create or replace view results.%I as %s', substr(parent, 6), shown);
        end if;
        drop table nightmill.before_parts;
    end loop;
end $$;

grant select on nightmill.publication_part to nightmill_writer, nightmill_reader, nightmill_view_owner;
grant insert on nightmill.publication_part to nightmill_writer;
grant update (part_id, mode) on nightmill.published to nightmill_writer;
grant usage on sequence nightmill.merged_part to nightmill_writer;
