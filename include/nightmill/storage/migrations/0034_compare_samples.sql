-- What changed between two batches, row by row, for people who may see answers: whoever has the role
-- nightmill_reviewer, and nobody else. Values are cut.
create function nightmill.changed_rows(new_batch bigint, old_batch bigint, fields text[], tenants_first text[],
    most integer)
returns table (source_id text, tenant text, old jsonb, new jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    relation text;
begin
    select format('nightmill.%I', 'rows_' || one.view_name) into relation
    from nightmill.batch as one
    join nightmill.batch as other on other.view_name = one.view_name
    where one.batch_id = new_batch and other.batch_id = old_batch;
    if relation is null or cardinality(fields) = 0 then
        return;
    end if;
    return query execute format(
        'select sample.source_id, sample.tenant, %2$s, %3$s
        from (
            select now.source_id, now.tenant, now as new_row, before as old_row
            from %1$s as now
            join %1$s as before on before.source_id = now.source_id and before.batch_id = %5$s
                and before.part_id in (%8$s)
            where now.batch_id = %4$s and now.part_id in (%7$s) and (%6$s)
            order by coalesce(now.tenant, '''') = any($1) desc, hashtext(now.source_id), now.source_id
            limit $2
        ) as sample',
        relation, nightmill.cut_values('old_row', 'new_row', fields), nightmill.cut_values('new_row', 'old_row', fields),
        new_batch, old_batch,
        (select string_agg(format('now.%1$I is distinct from before.%1$I', name), ' or ') from unnest(fields) as name),
        nightmill.parts_of(new_batch), nightmill.parts_of(old_batch)
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

-- The numbers of the parts that a batch's rows lie in, written out: so no other part is read.
create function nightmill.parts_of(batch bigint) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select batch || coalesce(string_agg(distinct ', ' || part_id, ''), '')
    from nightmill.publication_part
    where batch_id = batch and part_id <> batch
$$;

grant usage on schema nightmill to nightmill_reviewer;
grant execute on function nightmill.changed_rows(bigint, bigint, text[], text[], integer) to nightmill_reviewer;
