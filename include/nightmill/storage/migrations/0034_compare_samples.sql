-- What a batch has otherwise than readers saw it, row by row, for people who may see answers: whoever has the role
-- nightmill_reviewer, and nobody else. Values are cut. Readers saw `old_batch`; in by_interval also the other intervals
-- of the publication that the batch covers, and in by_key all that it showed.
create function nightmill.changed_rows(new_batch bigint, old_batch bigint, publication bigint, fields text[],
    tenants_first text[], most integer)
returns table (source_id text, tenant text, old jsonb, new jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    relation text;
    shown text;
begin
    select format('nightmill.%I', 'rows_' || one.view_name) into relation
    from nightmill.batch as one
    join nightmill.batch as other on other.view_name = one.view_name
    where one.batch_id = new_batch and other.batch_id = old_batch;
    shown := nightmill.rows_compared_with(new_batch, old_batch, publication);
    if relation is null or shown is null or cardinality(fields) = 0 then
        return;
    end if;
    return query execute format(
        'select sample.source_id, sample.tenant, %2$s, %3$s
        from (
            select now.source_id, now.tenant, now as new_row, before as old_row
            from %1$s as now
            join %1$s as before on before.source_id = now.source_id and (%5$s)
            where now.batch_id = %4$s and now.part_id = %7$s and now.gap_reason is null
                and before.gap_reason is null and (%6$s)
            order by coalesce(now.tenant, '''') = any($1) desc, hashtext(now.source_id), now.source_id
            limit $2
        ) as sample',
        relation, nightmill.cut_values('old_row', 'new_row', fields), nightmill.cut_values('new_row', 'old_row', fields),
        new_batch, shown,
        (select string_agg(format('now.%1$I is distinct from before.%1$I', name), ' or ') from unnest(fields) as name),
        nightmill.part_of(new_batch)
    ) using coalesce(tenants_first, '{}'), most;
end $$;

create function nightmill.cut_values(shown text, beside text, fields text[]) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select format('jsonb_strip_nulls(jsonb_object(%L::text[], array[%s]))', fields, string_agg(format(
        'case when (sample.%2$I).%1$I is distinct from (sample.%3$I).%1$I '
        'then coalesce(left(to_jsonb((sample.%2$I).%1$I) #>> ''{}'', 400), ''null'') end',
        name, shown, beside), ', '))
    from unnest(fields) as name
$$;

-- Where a batch's rows lie: in its own part, or in the newest one that it was merged into. In both they would count
-- twice.
create function nightmill.part_of(one bigint) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce((
        select told.part_id
        from (
            select one as part_id, null::bigint as publish_seq
            union
            select part_id, publish_seq from nightmill.publication_part where batch_id = one
        ) as told, (select 'rows_' || view_name from nightmill.batch where batch_id = one) as of_view (parent)
        where exists (
            select from pg_catalog.pg_inherits
            where inhparent = pg_catalog.to_regclass('nightmill.' || quote_ident(parent)) and not inhdetachpending
                and inhrelid = pg_catalog.to_regclass(
                    'nightmill.' || quote_ident(nightmill.partition_name(parent, told.part_id))))
        order by told.part_id = one desc, publish_seq desc
        limit 1), one)
$$;

-- The condition on `before` for what a batch was compared with; null where the list of that publication is gone.
create function nightmill.rows_compared_with(new_batch bigint, old_batch bigint, publication bigint) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    new nightmill.batch;
begin
    select * into new from nightmill.batch where batch_id = new_batch;
    if exists (select from nightmill.view_definition where view_name = new.view_name and mode = 'by_key') then
        return (
            select format('before.part_id = %s', part_id)
            from nightmill.publication_part
            join nightmill.publication as listing using (publish_seq)
            where publish_seq = publication and view_name = new.view_name);
    end if;
    return (
        select format('before.batch_id in (%s) and before.part_id in (%s)', string_agg(batch_id::text, ', '),
            string_agg(nightmill.part_of(batch_id)::text, ', '))
        from (
            select old_batch as batch_id
            union
            select listed.batch_id
            from nightmill.publication_part as listed
            join nightmill.publication as listing using (publish_seq)
            where publish_seq = publication and view_name = new.view_name
                and interval_start >= new.data_interval_start and interval_end <= new.data_interval_end
        ) as shown);
end $$;

grant usage on schema nightmill to nightmill_reviewer;
grant execute on function nightmill.changed_rows(bigint, bigint, bigint, text[], text[], integer) to nightmill_reviewer;
