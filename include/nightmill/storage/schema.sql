-- What the migrations make, for reading. Written by `make schema`; never run.

CREATE SCHEMA nightmill;

ALTER SCHEMA nightmill OWNER TO nightmill_owner;

CREATE SCHEMA results;

ALTER SCHEMA results OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.attach_partition(parent text, batch_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION nightmill.attach_partition(parent text, batch_id bigint) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.changed_rows(new_batch bigint, old_batch bigint, publication bigint, fields text[], tenants_first text[], most integer) RETURNS TABLE(source_id text, tenant text, old jsonb, new jsonb)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
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
end $_$;

ALTER FUNCTION nightmill.changed_rows(new_batch bigint, old_batch bigint, publication bigint, fields text[], tenants_first text[], most integer) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.create_partition(parent text, batch_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION nightmill.create_partition(parent text, batch_id bigint) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.cut_values(shown text, beside text, fields text[]) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
    select format('jsonb_strip_nulls(jsonb_object(%L::text[], array[%s]))', fields, string_agg(format(
        'case when (sample.%2$I).%1$I is distinct from (sample.%3$I).%1$I '
        'then coalesce(left(to_jsonb((sample.%2$I).%1$I) #>> ''{}'', 400), ''null'') end',
        name, shown, beside), ', '))
    from unnest(fields) as name
$_$;

ALTER FUNCTION nightmill.cut_values(shown text, beside text, fields text[]) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.drop_built_part(parent text, part_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION nightmill.drop_built_part(parent text, part_id bigint) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.drop_detached_partition(parent text, batch_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION nightmill.drop_detached_partition(parent text, batch_id bigint) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.drop_gap_rows(of_batch bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    shown_by text;
begin
    perform nightmill.fence_shared(of_batch);
    select view_name into shown_by from nightmill.batch where batch_id = of_batch and state = 'VALIDATING';
    if shown_by is null then
        raise exception 'batch % is not judged now: its rows stay', of_batch using errcode = 'NM004';
    end if;
    execute pg_catalog.format(
        'delete from nightmill.%I where part_id = $1 and batch_id = $1 and gap_reason is not null', 'rows_' || shown_by)
        using of_batch;
end $_$;

ALTER FUNCTION nightmill.drop_gap_rows(of_batch bigint) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.fence_exclusive(batch_id bigint) RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ select pg_advisory_xact_lock(7106, batch_id::int) $$;

ALTER FUNCTION nightmill.fence_exclusive(batch_id bigint) OWNER TO nightmill_owner;

COMMENT ON FUNCTION nightmill.fence_exclusive(batch_id bigint) IS 'Taken first by batch edges, cancel and takeover; never after the shared form';

CREATE FUNCTION nightmill.fence_shared(batch_id bigint) RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ select pg_advisory_xact_lock_shared(7106, batch_id::int) $$;

ALTER FUNCTION nightmill.fence_shared(batch_id bigint) OWNER TO nightmill_owner;

COMMENT ON FUNCTION nightmill.fence_shared(batch_id bigint) IS 'Taken first by every transaction that writes for a batch; read generation and lease in the NEXT statement';

CREATE FUNCTION nightmill.guard_batch() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_op = 'INSERT' then
        if new.state <> 'CREATED' then
            raise exception 'a batch starts as CREATED, not %', new.state using errcode = 'NM001';
        end if;
        perform nightmill.record_transition('batch', new.batch_id, new.batch_id, null, new.state, new.state_reason,
            new.generation);
        return new;
    end if;
    if new.generation < old.generation then
        raise exception 'batch %: generation % cannot fall to %', old.batch_id, old.generation, new.generation
            using errcode = 'NM002';
    end if;
    if (new.item_count, new.content_hash, new.frozen_at, new.contract_id, new.prompt_tokens, new.source_query,
            new.source_parameters, new.source_snapshot)
        is distinct from (old.item_count, old.content_hash, old.frozen_at, old.contract_id, old.prompt_tokens,
            old.source_query, old.source_parameters, old.source_snapshot)
        and old.frozen_at is not null
    then
        raise exception 'batch %: a frozen manifest never changes', old.batch_id using errcode = 'NM003';
    end if;
    if new.state is distinct from old.state then
        perform nightmill.require_edge('batch', old.batch_id, old.state, new.state);
        if old.state = 'BLOCKED' and new.state not in (old.blocked_from, 'CANCELLED') then
            raise exception 'batch %: blocked from %, cannot go on as %', old.batch_id, old.blocked_from, new.state
                using errcode = 'NM001';
        end if;
        perform nightmill.record_transition('batch', new.batch_id, new.batch_id, old.state, new.state,
            new.state_reason, new.generation);
    end if;
    return new;
end $$;

ALTER FUNCTION nightmill.guard_batch() OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.guard_hold() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_op = 'UPDATE' then
        if old.released_at is not null then
            raise exception 'the hold % of view % was released before', old.hold_id, old.view_name
                using errcode = 'NM001';
        end if;
    elsif new.released_at is not null or not exists (
        select from nightmill.publication
        where publish_seq = new.publish_seq and view_name = new.view_name and kind = 'rollback'
    ) then
        raise exception 'a hold of view % needs a rollback of it', new.view_name using errcode = 'NM001';
    end if;
    return new;
end $$;

ALTER FUNCTION nightmill.guard_hold() OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.guard_payload_segment() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if (select frozen_at from nightmill.batch where batch_id = new.batch_id) is not null then
        raise exception 'batch %: a frozen manifest never changes', new.batch_id using errcode = 'NM003';
    end if;
    return new;
end $$;

ALTER FUNCTION nightmill.guard_payload_segment() OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.guard_provider_batch() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_op = 'INSERT' then
        if new.state <> 'INTENT' then
            raise exception 'a provider batch starts as INTENT, not %', new.state using errcode = 'NM001';
        end if;
        perform nightmill.record_transition('provider_batch', new.provider_batch_id, new.batch_id, null, new.state,
            new.state_reason, null);
        return new;
    end if;
    if new.state is distinct from old.state then
        perform nightmill.require_edge('provider_batch', old.provider_batch_id, old.state, new.state);
        perform nightmill.record_transition('provider_batch', new.provider_batch_id, new.batch_id, old.state,
            new.state, new.state_reason, null);
    end if;
    return new;
end $$;

ALTER FUNCTION nightmill.guard_provider_batch() OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.guard_publication_part() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION nightmill.guard_publication_part() OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.guard_published() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION nightmill.guard_published() OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.guard_settling() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    touched bigint;
    lowest bigint;
    highest bigint;
    state_now text;
    planned bigint;
    accepts boolean;
    strange boolean := false;
    without_answer boolean := false;
    answers boolean := false;
    stand_ins boolean := false;
begin
    if tg_table_name not in ('outcome', 'attempt') then
        select bool_or(part_id <> batch_id), bool_or(gap_reason is null and result_id is null),
            bool_or(gap_reason is null), bool_or(gap_reason is not null)
        into strange, without_answer, answers, stand_ins
        from written;
    end if;
    for touched, lowest, highest in select batch_id, min(ordinal), max(ordinal) from written group by batch_id loop
        perform nightmill.fence_shared(touched);
        select state, item_count into state_now, planned from nightmill.batch where batch_id = touched;
        accepts := coalesce(state_now in ('PLANNING', 'QUEUED', 'RUNNING', 'BLOCKED'), false);
        if stand_ins then
            accepts := coalesce(state_now = 'VALIDATING', false) and not answers;
        end if;
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
    if strange then
        raise exception 'a row lies in a part of another batch than its own' using errcode = 'NM004';
    end if;
    if without_answer then
        raise exception 'a row has neither a result nor a gap_reason' using errcode = 'NM004';
    end if;
    return null;
end $$;

ALTER FUNCTION nightmill.guard_settling() OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.guard_shard() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_op = 'INSERT' then
        if new.state <> 'QUEUED' then
            raise exception 'a shard starts as QUEUED, not %', new.state using errcode = 'NM001';
        end if;
        perform nightmill.record_transition('shard', new.shard_id, new.batch_id, null, new.state, new.state_reason,
            null);
        return new;
    end if;
    if new.lease < old.lease then
        raise exception 'shard %: lease % cannot fall to %', old.shard_id, old.lease, new.lease
            using errcode = 'NM002';
    end if;
    if new.state is distinct from old.state then
        perform nightmill.require_edge('shard', old.shard_id, old.state, new.state);
        perform nightmill.record_transition('shard', new.shard_id, new.batch_id, old.state, new.state,
            new.state_reason, null);
    end if;
    return new;
end $$;

ALTER FUNCTION nightmill.guard_shard() OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.guard_shard_delete() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if old.state <> 'QUEUED' then
        raise exception 'shard % is %: only a shard that never ran can be planned anew', old.shard_id, old.state
            using errcode = 'NM001';
    end if;
    return old;
end $$;

ALTER FUNCTION nightmill.guard_shard_delete() OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.hold_partition(child text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION nightmill.hold_partition(child text) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.index_partition(parent text, batch_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION nightmill.index_partition(parent text, batch_id bigint) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.part_of(one bigint) RETURNS bigint
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION nightmill.part_of(one bigint) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.partition_name(parent text, batch_id bigint) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION nightmill.partition_name(parent text, batch_id bigint) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.record_transition(entity text, entity_id bigint, batch_id bigint, from_state text, to_state text, reason text, generation integer) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    insert into nightmill.transition (entity, entity_id, batch_id, from_state, to_state, reason, generation)
    values (entity, entity_id, batch_id, from_state, to_state, reason, generation)
$$;

ALTER FUNCTION nightmill.record_transition(entity text, entity_id bigint, batch_id bigint, from_state text, to_state text, reason text, generation integer) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.reported_number(usage jsonb, VARIADIC path text[]) RETURNS numeric
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select case jsonb_typeof(usage #> path)
        when 'number' then (usage #>> path)::numeric
        when 'string' then case when usage #>> path ~ '^(-|nan|inf|[0-9]{19}|[0-9.]+e)' then -1 end
    end
$$;

ALTER FUNCTION nightmill.reported_number(usage jsonb, VARIADIC path text[]) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.reported_usage(usage jsonb, OUT prompt_tokens numeric, OUT cached_tokens numeric, OUT cache_write_tokens numeric, OUT completion_tokens numeric, OUT reasoning_tokens numeric, OUT is_odd boolean) RETURNS record
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    with told as (
        select coalesce(nightmill.reported_number(usage, 'input_tokens'),
                nightmill.reported_number(usage, 'prompt_tokens')) as prompt,
            coalesce(nightmill.reported_number(usage, 'input_tokens_details', 'cached_tokens'),
                nightmill.reported_number(usage, 'prompt_tokens_details', 'cached_tokens'),
                nightmill.reported_number(usage, 'cache_read_input_tokens'),
                nightmill.reported_number(usage, 'prompt_cache_hit_tokens'),
                nightmill.reported_number(usage, 'cached_tokens')) as cached,
            coalesce(nightmill.reported_number(usage, 'input_tokens_details', 'cache_write_tokens'),
                nightmill.reported_number(usage, 'prompt_tokens_details', 'cache_write_tokens'),
                nightmill.reported_number(usage, 'prompt_tokens_details', 'cache_creation_tokens'),
                nightmill.reported_number(usage, 'cache_creation_input_tokens')) as written,
            coalesce(nightmill.reported_number(usage, 'output_tokens'),
                nightmill.reported_number(usage, 'completion_tokens')) as completion,
            coalesce(nightmill.reported_number(usage, 'output_tokens_details', 'reasoning_tokens'),
                nightmill.reported_number(usage, 'output_tokens_details', 'thinking_tokens'),
                nightmill.reported_number(usage, 'completion_tokens_details', 'reasoning_tokens'),
                nightmill.reported_number(usage, 'reasoning_tokens')) as reasoning,
            nullif(nightmill.reported_number(usage, 'total_tokens'), 0) as total,
            not usage ? 'prompt_tokens' and usage ?| array['cache_read_input_tokens', 'cache_creation_input_tokens']
                as counts_cache_apart
    ), whole as (
        select told.*, prompt + case when counts_cache_apart then coalesce(cached, 0) + coalesce(written, 0) else 0 end
                as whole_prompt,
            completion + case when total in (prompt + completion + reasoning,
                prompt + coalesce(cached, 0) + coalesce(written, 0) + completion + reasoning)
                and total not in (prompt + completion,
                prompt + coalesce(cached, 0) + coalesce(written, 0) + completion) then reasoning else 0 end
                as whole_completion
        from told
    ), judged as (
        select whole.*, coalesce(cached, 0) + coalesce(written, 0) <= coalesce(whole_prompt, 1e15)
            and coalesce(reasoning, 0) <= coalesce(whole_completion, 1e15)
            and coalesce(total in (prompt + whole_completion, whole_prompt + whole_completion), true)
            and not exists (
                select from unnest(array[prompt, cached, written, completion, reasoning, total]) as count
                where count < 0 or count > 1e14 or count <> trunc(count)
            ) as can_be
        from whole
    )
    select case when can_be then whole_prompt end, case when can_be then cached end,
        case when can_be then written end, case when can_be then whole_completion end,
        case when can_be then reasoning end, not can_be
    from judged
$$;

ALTER FUNCTION nightmill.reported_usage(usage jsonb, OUT prompt_tokens numeric, OUT cached_tokens numeric, OUT cache_write_tokens numeric, OUT completion_tokens numeric, OUT reasoning_tokens numeric, OUT is_odd boolean) OWNER TO nightmill_owner;

COMMENT ON FUNCTION nightmill.reported_usage(usage jsonb, OUT prompt_tokens numeric, OUT cached_tokens numeric, OUT cache_write_tokens numeric, OUT completion_tokens numeric, OUT reasoning_tokens numeric, OUT is_odd boolean) IS 'Counts of a usage report, or is_odd where they cannot be';

CREATE FUNCTION nightmill.require_edge(entity text, entity_id bigint, from_state text, to_state text) RETURNS void
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if not exists (
        select from nightmill.state_edge as edge
        where edge.entity = require_edge.entity and edge.from_state = require_edge.from_state
            and edge.to_state = require_edge.to_state
    ) then
        raise exception '% % cannot go from % to %', entity, entity_id, from_state, to_state using errcode = 'NM001';
    end if;
end $$;

ALTER FUNCTION nightmill.require_edge(entity text, entity_id bigint, from_state text, to_state text) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.require_partitioned(parent text) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if not exists (
        select from pg_catalog.pg_class
        where relnamespace = 'nightmill'::regnamespace and relkind = 'p' and relname = parent
    ) then
        raise exception '% has no partitions', parent using errcode = 'NM005';
    end if;
end $$;

ALTER FUNCTION nightmill.require_partitioned(parent text) OWNER TO nightmill_owner;

CREATE FUNCTION nightmill.rows_compared_with(new_batch bigint, old_batch bigint, publication bigint) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION nightmill.rows_compared_with(new_batch bigint, old_batch bigint, publication bigint) OWNER TO nightmill_owner;

CREATE TABLE nightmill.account_limit (
    account text NOT NULL,
    model text NOT NULL,
    refusals integer DEFAULT 0 NOT NULL,
    refused_as text,
    refused_since timestamp with time zone,
    refused_at timestamp with time zone,
    next_at timestamp with time zone,
    probe bigint,
    known_until bigint DEFAULT 0 NOT NULL,
    tokens bigint,
    tokens_refused bigint,
    file_bytes bigint,
    file_requests bigint,
    size_refused_at timestamp with time zone,
    CONSTRAINT account_limit_refused CHECK (((refusals > 0) = (refused_since IS NOT NULL))),
    CONSTRAINT account_limit_refused_known CHECK ((refused_as = ANY (ARRAY['queue'::text, 'size'::text, 'rate'::text])))
);

ALTER TABLE nightmill.account_limit OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.account_limit IS 'What an account was seen to take of a model, for all runs: while it refuses, one probe goes out at a time';

COMMENT ON COLUMN nightmill.account_limit.refusals IS 'Creates refused in a row; 0 = the last one was taken';

COMMENT ON COLUMN nightmill.account_limit.next_at IS 'The next probe goes out no sooner';

COMMENT ON COLUMN nightmill.account_limit.probe IS 'The provider batch that goes out alone; null = none so far';

COMMENT ON COLUMN nightmill.account_limit.known_until IS 'Refusals of provider batches up to this one tell nothing new: they left before the first refusal was seen';

COMMENT ON COLUMN nightmill.account_limit.tokens IS 'Prompt tokens that are known, or hoped, to fit into its queue';

COMMENT ON COLUMN nightmill.account_limit.tokens_refused IS 'Prompt tokens that did not fit: what was in the queue and the file that was refused, at the first of the refusals';

COMMENT ON COLUMN nightmill.account_limit.file_bytes IS 'A file of twice as many bytes was refused as too large';

COMMENT ON COLUMN nightmill.account_limit.file_requests IS 'A file of twice as many requests was refused as too large';

CREATE TABLE nightmill.attempt (
    batch_id bigint NOT NULL,
    ordinal bigint NOT NULL,
    provider_batch_id bigint NOT NULL,
    class text,
    code text,
    sent_upstream boolean NOT NULL,
    prompt_tokens integer,
    completion_tokens integer,
    cached_tokens integer,
    model text,
    finish_reason text,
    made_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    attempt_no smallint DEFAULT 1 NOT NULL,
    backoff_s real,
    cache_write_tokens integer,
    reasoning_tokens integer,
    odd_usage jsonb,
    CONSTRAINT attempt_usage_adds_up CHECK ((((COALESCE(cached_tokens, 0) + COALESCE(cache_write_tokens, 0)) <= COALESCE(prompt_tokens, 0)) AND (COALESCE(reasoning_tokens, 0) <= COALESCE(completion_tokens, 0)) AND (LEAST(prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, 0) = 0) AND ((odd_usage IS NULL) OR (COALESCE(prompt_tokens, completion_tokens) IS NULL))))
)
PARTITION BY LIST (batch_id);

ALTER TABLE nightmill.attempt OWNER TO nightmill_owner;

COMMENT ON COLUMN nightmill.attempt.class IS 'null = accepted';

COMMENT ON COLUMN nightmill.attempt.sent_upstream IS 'False where no model worked on the request, so that it is not paid: expired, cancelled, or refused';

COMMENT ON COLUMN nightmill.attempt.cached_tokens IS 'Part of prompt_tokens: read from the provider''s prompt cache';

COMMENT ON COLUMN nightmill.attempt.attempt_no IS 'Counts from 1 per item of a batch, capacity failures included';

COMMENT ON COLUMN nightmill.attempt.backoff_s IS 'Seconds from the end of the attempt before to the intent of this one; null for the first';

COMMENT ON COLUMN nightmill.attempt.cache_write_tokens IS 'Part of prompt_tokens: written to the prompt cache';

COMMENT ON COLUMN nightmill.attempt.reasoning_tokens IS 'Part of completion_tokens: thought and not shown';

COMMENT ON COLUMN nightmill.attempt.odd_usage IS 'What the provider wrote where its usage cannot be; no count of it is taken then, and no price made of it';

CREATE TABLE nightmill.batch (
    batch_id bigint NOT NULL,
    job text NOT NULL,
    view_name text NOT NULL,
    dag_id text NOT NULL,
    run_id text NOT NULL,
    incarnation integer NOT NULL,
    state text DEFAULT 'CREATED'::text NOT NULL,
    state_reason text DEFAULT 'created'::text NOT NULL,
    blocked_from text,
    blocked_by text,
    generation integer DEFAULT 1 NOT NULL,
    contract_id bigint NOT NULL,
    parent_batch_id bigint,
    payload_batch_id bigint,
    dry_run boolean DEFAULT false NOT NULL,
    params jsonb DEFAULT '{}'::jsonb NOT NULL,
    note text,
    requested_by text,
    data_interval_start timestamp with time zone,
    data_interval_end timestamp with time zone,
    source_query text,
    source_parameters jsonb,
    source_snapshot text,
    item_count bigint,
    prompt_tokens bigint,
    content_hash bytea,
    estimate jsonb,
    counts jsonb,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    frozen_at timestamp with time zone,
    ended_at timestamp with time zone,
    retired_at timestamp with time zone,
    max_tries integer DEFAULT 5 NOT NULL,
    gap_facts jsonb,
    CONSTRAINT batch_blocked CHECK (((state = 'BLOCKED'::text) = (blocked_from IS NOT NULL))),
    CONSTRAINT batch_ended CHECK (((state = ANY (ARRAY['PUBLISHED'::text, 'ESTIMATED'::text, 'REJECTED'::text, 'PARTIAL_FAILED'::text, 'CANCELLED'::text])) = (ended_at IS NOT NULL))),
    CONSTRAINT batch_frozen CHECK (((state = ANY (ARRAY['CREATED'::text, 'CANCELLED'::text])) OR ((frozen_at IS NOT NULL) AND (item_count IS NOT NULL) AND (content_hash IS NOT NULL)))),
    CONSTRAINT batch_state_known CHECK ((state = ANY (ARRAY['CREATED'::text, 'PLANNING'::text, 'QUEUED'::text, 'RUNNING'::text, 'VALIDATING'::text, 'STAGED'::text, 'PUBLISHED'::text, 'ESTIMATED'::text, 'REJECTED'::text, 'PARTIAL_FAILED'::text, 'CANCELLED'::text, 'BLOCKED'::text])))
);

ALTER TABLE nightmill.batch OWNER TO nightmill_owner;

COMMENT ON COLUMN nightmill.batch.retired_at IS 'When retention dropped its partitions, payloads and dead letters; the row itself stays';

COMMENT ON COLUMN nightmill.batch.max_tries IS 'Airflow''s max_tries of freeze_snapshot when it last saw this batch; a greater one says that it was cleared since';

COMMENT ON COLUMN nightmill.batch.gap_facts IS 'How much is accepted, which gaps there are, how each is to be filled, and what readers may see (domain/gaps.py)';

CREATE TABLE nightmill.price (
    model text NOT NULL,
    effective_from date NOT NULL,
    input_per_million numeric NOT NULL,
    cached_input_per_million numeric NOT NULL,
    output_per_million numeric NOT NULL,
    batch_discount numeric NOT NULL,
    cache_write_per_million numeric
);

ALTER TABLE nightmill.price OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.price IS 'US dollars per million tokens at list price; batch_discount is the share taken off';

COMMENT ON COLUMN nightmill.price.cache_write_per_million IS 'Of tokens written to a prompt cache; null = as input';

CREATE TABLE nightmill.provider_batch (
    provider_batch_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    shard_id bigint NOT NULL,
    job text NOT NULL,
    state text DEFAULT 'INTENT'::text NOT NULL,
    state_reason text DEFAULT 'intent'::text NOT NULL,
    token text NOT NULL,
    account text NOT NULL,
    model text NOT NULL,
    ordinals int8multirange NOT NULL,
    requests bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    file_bytes bigint NOT NULL,
    input_file_id text,
    provider_id text,
    adopted boolean,
    raw_status text,
    output_file_id text,
    error_file_id text,
    counts jsonb,
    usage jsonb,
    problems jsonb,
    intent_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    uploaded_at timestamp with time zone,
    submitted_at timestamp with time zone,
    ended_at timestamp with time zone,
    collected_at timestamp with time zone,
    evidence_deleted_at timestamp with time zone,
    refused text,
    suspects jsonb,
    taken_at timestamp with time zone,
    over_at timestamp with time zone,
    unknown_since timestamp with time zone,
    stop_asked_at timestamp with time zone,
    provider_made_at timestamp with time zone,
    CONSTRAINT provider_batch_file_before_create CHECK (((state = ANY (ARRAY['INTENT'::text, 'ABANDONED'::text])) OR (input_file_id IS NOT NULL))),
    CONSTRAINT provider_batch_id_known CHECK (((state = ANY (ARRAY['INTENT'::text, 'UPLOADED'::text, 'ABANDONED'::text])) OR ((provider_id IS NOT NULL) AND (adopted IS NOT NULL)))),
    CONSTRAINT provider_batch_refused_ended CHECK (((refused IS NULL) OR (state = 'ABANDONED'::text))),
    CONSTRAINT provider_batch_refused_known CHECK ((refused = ANY (ARRAY['capacity'::text, 'size'::text, 'named'::text, 'unnamed'::text]))),
    CONSTRAINT provider_batch_state_known CHECK ((state = ANY (ARRAY['INTENT'::text, 'UPLOADED'::text, 'SUBMITTED'::text, 'ENDED'::text, 'COLLECTED'::text, 'ABANDONED'::text]))),
    CONSTRAINT provider_batch_suspects_named CHECK (((suspects IS NULL) OR (refused = 'named'::text)))
);

ALTER TABLE nightmill.provider_batch OWNER TO nightmill_owner;

COMMENT ON COLUMN nightmill.provider_batch.account IS 'Fingerprint of base URL, project and key: whose batch it is';

COMMENT ON COLUMN nightmill.provider_batch.refused IS 'How the provider refused the whole file: no room, too large, bad lines by number, or no line named';

COMMENT ON COLUMN nightmill.provider_batch.suspects IS 'Groups of ordinals, each of which goes into a file of its own: what the named lines may be';

COMMENT ON COLUMN nightmill.provider_batch.taken_at IS 'When it was first seen past the provider''s validation: its queue had room for it';

COMMENT ON COLUMN nightmill.provider_batch.over_at IS 'When the provider was first seen to say that it ended; what is missing then is waited for from here on';

COMMENT ON COLUMN nightmill.provider_batch.unknown_since IS 'Since when the provider shows a status that nobody knows; null while it is known';

COMMENT ON COLUMN nightmill.provider_batch.stop_asked_at IS 'When nightmill asked the provider to cancel it; null = whoever cancelled it is somebody else';

COMMENT ON COLUMN nightmill.provider_batch.provider_made_at IS 'When it was made, by the provider''s own clock';

CREATE VIEW nightmill.attempt_cost AS
 SELECT attempt.batch_id,
    attempt.ordinal,
    attempt.provider_batch_id,
    attempt.class,
    attempt.code,
    attempt.sent_upstream,
    attempt.prompt_tokens,
    attempt.completion_tokens,
    attempt.cached_tokens,
    attempt.model,
    attempt.finish_reason,
    attempt.made_at,
    attempt.attempt_no,
    attempt.backoff_s,
    attempt.cache_write_tokens,
    attempt.reasoning_tokens,
    attempt.odd_usage,
    provider_batch.provider_id,
    ((((((price.input_per_million * (((attempt.prompt_tokens - COALESCE(attempt.cached_tokens, 0)) - COALESCE(attempt.cache_write_tokens, 0)))::numeric) + (price.cached_input_per_million * (COALESCE(attempt.cached_tokens, 0))::numeric)) + (COALESCE(price.cache_write_per_million, price.input_per_million) * (COALESCE(attempt.cache_write_tokens, 0))::numeric)) + (price.output_per_million * (COALESCE(attempt.completion_tokens, 0))::numeric)) / (1000000)::numeric) * ((1)::numeric - price.batch_discount)) AS cost
   FROM (((nightmill.attempt
     JOIN nightmill.provider_batch USING (batch_id, provider_batch_id))
     JOIN nightmill.batch USING (batch_id))
     LEFT JOIN LATERAL ( SELECT price_1.model,
            price_1.effective_from,
            price_1.input_per_million,
            price_1.cached_input_per_million,
            price_1.output_per_million,
            price_1.batch_discount,
            price_1.cache_write_per_million
           FROM nightmill.price price_1
          WHERE ((price_1.model = provider_batch.model) AND (price_1.effective_from <= ((batch.created_at AT TIME ZONE 'UTC'::text))::date))
          ORDER BY price_1.effective_from DESC
         LIMIT 1) price ON (true));

ALTER VIEW nightmill.attempt_cost OWNER TO nightmill_owner;

COMMENT ON VIEW nightmill.attempt_cost IS 'Attempts with the provider''s batch id and their cost in US dollars';

ALTER TABLE nightmill.batch ALTER COLUMN batch_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME nightmill.batch_batch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE nightmill.breaker (
    batch_id bigint NOT NULL,
    kind text NOT NULL,
    state text NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    cause text,
    remedy text,
    CONSTRAINT breaker_kind_known CHECK ((kind = ANY (ARRAY['failures'::text, 'cancelled'::text]))),
    CONSTRAINT breaker_open CHECK (((state = 'open'::text) = ((cause IS NOT NULL) AND (remedy IS NOT NULL)))),
    CONSTRAINT breaker_state_known CHECK ((state = ANY (ARRAY['watching'::text, 'passed'::text, 'probing'::text, 'open'::text])))
);

ALTER TABLE nightmill.breaker OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.breaker IS 'Why a batch sends nothing more before a person clears its task (open), or only a few requests at first (probing)';

COMMENT ON COLUMN nightmill.breaker.since IS 'Only what settles later counts';

CREATE TABLE nightmill.contract (
    contract_id bigint NOT NULL,
    job text NOT NULL,
    folder_hash text NOT NULL,
    files jsonb NOT NULL,
    prompt_version text NOT NULL,
    output_schema_version text NOT NULL,
    model_policy_version text NOT NULL,
    transform_name text NOT NULL,
    transform_version text NOT NULL,
    validators_hash text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE nightmill.contract OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.contract IS 'Pinned copies of job folders: file name -> text; verified against folder_hash';

ALTER TABLE nightmill.contract ALTER COLUMN contract_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME nightmill.contract_contract_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE nightmill.dead_letter (
    dead_letter_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    ordinal bigint NOT NULL,
    key bytea NOT NULL,
    class text NOT NULL,
    code text NOT NULL,
    message text NOT NULL,
    attempts integer NOT NULL,
    provider_batch_id bigint,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    origin_batch_id bigint,
    ended_as text DEFAULT 'dead_lettered'::text NOT NULL,
    CONSTRAINT dead_letter_ended_as_known CHECK ((ended_as = ANY (ARRAY['dead_lettered'::text, 'in_review'::text])))
);

ALTER TABLE nightmill.dead_letter OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.dead_letter IS 'Context of items that gave up or wait in review; the message may quote a provider';

COMMENT ON COLUMN nightmill.dead_letter.created_at IS 'When the item gave up; a copy keeps the time of its origin';

COMMENT ON COLUMN nightmill.dead_letter.origin_batch_id IS 'The batch in which the item gave up, where that is another one; null = batch_id';

COMMENT ON COLUMN nightmill.dead_letter.ended_as IS 'The kind of its outcome when it was settled; outlives the outcome, so that later batches can copy it';

ALTER TABLE nightmill.dead_letter ALTER COLUMN dead_letter_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME nightmill.dead_letter_dead_letter_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE nightmill.deleted_key (
    part_id bigint NOT NULL,
    source_id text NOT NULL,
    batch_id bigint NOT NULL
);

ALTER TABLE nightmill.deleted_key OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.deleted_key IS 'Source ids that a view by key does not show, by part, and the batch that deleted each: an older one brings none back';

CREATE TABLE nightmill.deployment (
    deployment_id text NOT NULL,
    pinned_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    only_row boolean DEFAULT true NOT NULL,
    CONSTRAINT deployment_only_row_check CHECK (only_row)
);

ALTER TABLE nightmill.deployment OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.deployment IS 'The Airflow variable nightmill_deployment of the one Airflow that uses this ledger; empty until its first task';

CREATE TABLE nightmill.gate_verdict (
    verdict_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    generation integer NOT NULL,
    gate text NOT NULL,
    details jsonb NOT NULL,
    config_hash text NOT NULL,
    decided_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    verdict text NOT NULL,
    decided_by text,
    passed boolean GENERATED ALWAYS AS (
CASE verdict
    WHEN 'passed'::text THEN true
    WHEN 'not configured'::text THEN NULL::boolean
    ELSE false
END) STORED,
    CONSTRAINT gate_known CHECK ((gate = ANY (ARRAY['completion'::text, 'check_staging'::text, 'compare'::text, 'approve'::text]))),
    CONSTRAINT gate_verdict_known CHECK ((verdict = ANY (ARRAY['passed'::text, 'refused'::text, 'waiting'::text, 'rejected'::text, 'not configured'::text])))
);

ALTER TABLE nightmill.gate_verdict OWNER TO nightmill_owner;

COMMENT ON COLUMN nightmill.gate_verdict.verdict IS 'passed, refused, waiting for an answer, rejected for good; or that the job does not have this gate';

COMMENT ON COLUMN nightmill.gate_verdict.decided_by IS 'The person who decided, or what decided for them; null where a rule did';

COMMENT ON COLUMN nightmill.gate_verdict.passed IS 'null = the job does not configure this gate, which opens it';

ALTER TABLE nightmill.gate_verdict ALTER COLUMN verdict_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME nightmill.gate_verdict_verdict_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE nightmill.hold (
    hold_id bigint NOT NULL,
    view_name text NOT NULL,
    interval_start timestamp with time zone,
    interval_end timestamp with time zone,
    publish_seq bigint NOT NULL,
    taken_back bigint[] NOT NULL,
    reason text,
    held_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    held_by text NOT NULL,
    request text,
    revoke boolean DEFAULT false NOT NULL,
    revoked bigint,
    released_at timestamp with time zone,
    released_by text,
    CONSTRAINT released_by_somebody CHECK (((released_at IS NULL) = (released_by IS NULL))),
    CONSTRAINT revoked_before_released CHECK (((released_at IS NULL) OR (NOT revoke) OR (revoked IS NOT NULL))),
    CONSTRAINT view_or_interval CHECK (((interval_start IS NULL) = (interval_end IS NULL)))
);

ALTER TABLE nightmill.hold OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.hold IS 'What a rollback took back, and until when runs must not publish: the whole view, or the interval';

COMMENT ON COLUMN nightmill.hold.publish_seq IS 'The publication of the rollback';

COMMENT ON COLUMN nightmill.hold.request IS 'The run that asked for it: its retry does nothing twice';

COMMENT ON COLUMN nightmill.hold.revoke IS 'Whether its answers are to be asked for again; revoked: how many they were';

ALTER TABLE nightmill.hold ALTER COLUMN hold_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME nightmill.hold_hold_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE nightmill.item (
    batch_id bigint NOT NULL,
    ordinal bigint NOT NULL,
    key bytea NOT NULL,
    source_id text NOT NULL,
    source_version text NOT NULL,
    content_hash bytea NOT NULL,
    tenant text NOT NULL,
    domain text NOT NULL,
    tokens integer NOT NULL,
    skip_reason text,
    required boolean DEFAULT false NOT NULL,
    skip_class text,
    skip_message text,
    CONSTRAINT item_never_sent CHECK ((((skip_reason IS NULL) = (skip_class IS NULL)) AND ((skip_message IS NULL) OR (skip_reason IS NOT NULL))))
)
PARTITION BY LIST (batch_id);

ALTER TABLE nightmill.item OWNER TO nightmill_owner;

COMMENT ON COLUMN nightmill.item.tokens IS 'Prompt tokens of the rendered request';

COMMENT ON COLUMN nightmill.item.skip_reason IS 'Why this item is never sent: the code of what a check of inputs found, or deleted; else null';

COMMENT ON COLUMN nightmill.item.required IS 'source.columns.required: a missing answer is never allowed';

COMMENT ON COLUMN nightmill.item.skip_class IS 'The failure class of skip_reason';

COMMENT ON COLUMN nightmill.item.skip_message IS 'The message of its dead letter; null beside a skip_reason: the item is left out without one';

CREATE TABLE nightmill.outcome (
    batch_id bigint NOT NULL,
    ordinal bigint NOT NULL,
    kind text NOT NULL,
    result_id bigint,
    class text,
    code text,
    settled_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT outcome_class CHECK (((kind = ANY (ARRAY['dead_lettered'::text, 'in_review'::text])) <= ((class IS NOT NULL) AND (code IS NOT NULL)))),
    CONSTRAINT outcome_kind_known CHECK ((kind = ANY (ARRAY['accepted'::text, 'reused'::text, 'dead_lettered'::text, 'in_review'::text, 'excluded'::text, 'cancelled'::text]))),
    CONSTRAINT outcome_result CHECK (((kind = ANY (ARRAY['accepted'::text, 'reused'::text])) = (result_id IS NOT NULL)))
)
PARTITION BY LIST (batch_id);

ALTER TABLE nightmill.outcome OWNER TO nightmill_owner;

CREATE VIEW nightmill.item_bucket AS
 SELECT batch_id,
    ordinal,
    kind AS bucket,
    result_id,
    class,
    code,
    settled_at
   FROM nightmill.outcome;

ALTER VIEW nightmill.item_bucket OWNER TO nightmill_owner;

CREATE TABLE nightmill.maintenance_action (
    action_id bigint NOT NULL,
    sweep text NOT NULL,
    batch_id bigint,
    what text NOT NULL,
    alert boolean NOT NULL,
    done_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE nightmill.maintenance_action OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.maintenance_action IS 'What maintenance did; alert = a person should look';

ALTER TABLE nightmill.maintenance_action ALTER COLUMN action_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME nightmill.maintenance_action_action_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE nightmill.maintenance_sweep (
    sweep text NOT NULL,
    ran_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE nightmill.maintenance_sweep OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.maintenance_sweep IS 'When each sweep of maintenance last came to its end';

CREATE SEQUENCE nightmill.merged_part
    START WITH -1
    INCREMENT BY -1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE nightmill.merged_part OWNER TO nightmill_owner;

CREATE TABLE nightmill.migration (
    number integer NOT NULL,
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE nightmill.migration OWNER TO nightmill_owner;

CREATE TABLE nightmill.part_build (
    part_id bigint NOT NULL,
    view_name text NOT NULL,
    batch_id bigint,
    begun_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE nightmill.part_build OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.part_build IS 'Parts that are filled beside their view, for a batch or (null) by maintenance; what a killed builder left is dropped';

CREATE TABLE nightmill.payload_segment (
    batch_id bigint NOT NULL,
    segment integer NOT NULL,
    first_ordinal bigint NOT NULL,
    last_ordinal bigint NOT NULL,
    object_path text NOT NULL,
    object_bytes bigint NOT NULL,
    raw_sha256 bytea,
    object_sha256 bytea,
    CONSTRAINT payload_segment_check CHECK ((first_ordinal <= last_ordinal)),
    CONSTRAINT payload_segment_checksum CHECK ((num_nonnulls(raw_sha256, object_sha256) = 1))
);

ALTER TABLE nightmill.payload_segment OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.payload_segment IS 'Payload objects in item order: zstd JSON lines, one line per ordinal';

COMMENT ON COLUMN nightmill.payload_segment.raw_sha256 IS 'Of the unpacked lines; of objects older than object_sha256';

ALTER TABLE nightmill.provider_batch ALTER COLUMN provider_batch_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME nightmill.provider_batch_provider_batch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW nightmill.provider_batch_usage AS
 SELECT provider_batch.batch_id,
    provider_batch.provider_batch_id,
    (reported.prompt_tokens IS NOT NULL) AS is_reported,
    reported.prompt_tokens AS reported_prompt_tokens,
    reported.cached_tokens AS reported_cached_tokens,
    reported.completion_tokens AS reported_completion_tokens,
    (reported.prompt_tokens - (attributed.prompt_tokens)::numeric) AS unattributed_prompt_tokens,
    (reported.cached_tokens - (attributed.cached_tokens)::numeric) AS unattributed_cached_tokens,
    (reported.completion_tokens - (attributed.completion_tokens)::numeric) AS unattributed_completion_tokens,
    reported.cache_write_tokens AS reported_cache_write_tokens,
    reported.reasoning_tokens AS reported_reasoning_tokens,
    (reported.cache_write_tokens - (attributed.cache_write_tokens)::numeric) AS unattributed_cache_write_tokens,
    (reported.reasoning_tokens - (attributed.reasoning_tokens)::numeric) AS unattributed_reasoning_tokens,
    COALESCE(told.is_odd, false) AS is_odd
   FROM ((((((nightmill.provider_batch
     LEFT JOIN ( SELECT attempt.batch_id,
            attempt.provider_batch_id,
            COALESCE(sum(attempt.prompt_tokens), (0)::bigint) AS prompt_tokens,
            COALESCE(sum(attempt.cached_tokens), (0)::bigint) AS cached_tokens,
            COALESCE(sum(attempt.cache_write_tokens), (0)::bigint) AS cache_write_tokens,
            COALESCE(sum(attempt.completion_tokens), (0)::bigint) AS completion_tokens,
            COALESCE(sum(attempt.reasoning_tokens), (0)::bigint) AS reasoning_tokens,
            bool_or(((attempt.class IS NULL) OR (attempt.class = 'output'::text) OR (attempt.prompt_tokens > 0))) AS answered
           FROM nightmill.attempt
          GROUP BY attempt.batch_id, attempt.provider_batch_id) counted USING (batch_id, provider_batch_id))
     CROSS JOIN LATERAL ( SELECT COALESCE(counted.prompt_tokens, (0)::bigint) AS prompt_tokens,
            COALESCE(counted.cached_tokens, (0)::bigint) AS cached_tokens,
            COALESCE(counted.cache_write_tokens, (0)::bigint) AS cache_write_tokens,
            COALESCE(counted.completion_tokens, (0)::bigint) AS completion_tokens,
            COALESCE(counted.reasoning_tokens, (0)::bigint) AS reasoning_tokens,
            COALESCE(counted.answered, false) AS answered) attributed)
     CROSS JOIN LATERAL nightmill.reported_usage(provider_batch.usage) told(prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens, reasoning_tokens, is_odd))
     CROSS JOIN LATERAL ( SELECT
                CASE
                    WHEN ((told.prompt_tokens > (0)::numeric) OR (NOT attributed.answered)) THEN told.prompt_tokens
                    ELSE NULL::numeric
                END AS prompt_tokens,
            COALESCE(told.completion_tokens, (attributed.completion_tokens)::numeric) AS completion_tokens) sums)
     CROSS JOIN LATERAL ( SELECT sums.prompt_tokens,
            sums.completion_tokens,
            COALESCE(NULLIF(told.cached_tokens, (0)::numeric), LEAST((attributed.cached_tokens)::numeric, (sums.prompt_tokens - COALESCE(told.cache_write_tokens, (0)::numeric)))) AS cached_tokens,
            COALESCE(NULLIF(told.reasoning_tokens, (0)::numeric), LEAST((attributed.reasoning_tokens)::numeric, sums.completion_tokens)) AS reasoning_tokens) most)
     CROSS JOIN LATERAL ( SELECT most.prompt_tokens,
            most.completion_tokens,
            most.cached_tokens,
            most.reasoning_tokens,
            COALESCE(NULLIF(told.cache_write_tokens, (0)::numeric), LEAST((attributed.cache_write_tokens)::numeric, (most.prompt_tokens - most.cached_tokens))) AS cache_write_tokens) reported)
  WHERE (provider_batch.state = ANY (ARRAY['ENDED'::text, 'COLLECTED'::text]));

ALTER VIEW nightmill.provider_batch_usage OWNER TO nightmill_owner;

COMMENT ON VIEW nightmill.provider_batch_usage IS 'What the provider reports for each batch, and the part of it that no attempt explains: lost answers, for one';

CREATE TABLE nightmill.publication (
    publish_seq bigint NOT NULL,
    view_name text NOT NULL,
    batch_id bigint,
    kind text NOT NULL,
    published_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    published_by text NOT NULL,
    counts jsonb NOT NULL,
    gaps bigint NOT NULL,
    approved_by text,
    note text,
    flipped_by xid8 DEFAULT pg_current_xact_id() NOT NULL,
    CONSTRAINT publication_kind_known CHECK ((kind = ANY (ARRAY['publish'::text, 'rollback'::text, 'merge'::text, 'retention'::text])))
);

ALTER TABLE nightmill.publication OWNER TO nightmill_owner;

COMMENT ON COLUMN nightmill.publication.flipped_by IS 'The transaction of the flip: readers whose snapshot is older see what was shown before';

CREATE TABLE nightmill.publication_part (
    publish_seq bigint NOT NULL,
    part_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    interval_start timestamp with time zone,
    interval_end timestamp with time zone,
    frozen_at timestamp with time zone NOT NULL,
    counts jsonb NOT NULL,
    gaps bigint NOT NULL,
    shown_since timestamp with time zone NOT NULL
);

ALTER TABLE nightmill.publication_part OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.publication_part IS 'What each publication shows: the parts, and the batches whose rows lie in each; a merged part has several';

ALTER TABLE nightmill.publication ALTER COLUMN publish_seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME nightmill.publication_publish_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE nightmill.published (
    view_name text NOT NULL,
    batch_id bigint NOT NULL,
    publish_seq bigint NOT NULL,
    published_at timestamp with time zone NOT NULL,
    gaps bigint NOT NULL,
    mode text DEFAULT 'replace'::text NOT NULL,
    part_id bigint,
    CONSTRAINT one_part_or_intervals CHECK (
CASE mode
    WHEN 'by_interval'::text THEN (part_id IS NULL)
    WHEN 'replace'::text THEN (part_id IS NOT NULL)
    WHEN 'by_key'::text THEN (part_id IS NOT NULL)
    ELSE false
END)
);

ALTER TABLE nightmill.published OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.published IS 'Which publication each view shows, since when, with how many gaps';

CREATE TABLE nightmill.quarantine (
    quarantine_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    shard_id bigint,
    what text NOT NULL,
    held_generation integer,
    held_lease integer,
    rows bigint,
    refused_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    why text
);

ALTER TABLE nightmill.quarantine OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.quarantine IS 'Writes of stale holders that were refused, and why';

ALTER TABLE nightmill.quarantine ALTER COLUMN quarantine_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME nightmill.quarantine_quarantine_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE nightmill.result (
    result_id bigint NOT NULL,
    key bytea NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    effective boolean DEFAULT true NOT NULL,
    job text NOT NULL,
    tenant text NOT NULL,
    source_id text NOT NULL,
    source_version text NOT NULL,
    content_hash bytea NOT NULL,
    answer jsonb NOT NULL,
    notes text[] DEFAULT '{}'::text[] NOT NULL,
    citations jsonb DEFAULT '[]'::jsonb NOT NULL,
    validators_hash text NOT NULL,
    contract_id bigint NOT NULL,
    prompt_version text NOT NULL,
    model text NOT NULL,
    batch_id bigint NOT NULL,
    provider_batch_id bigint,
    prompt_tokens integer,
    completion_tokens integer,
    answered_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    cached_tokens integer,
    cache_write_tokens integer,
    reasoning_tokens integer,
    revoked_at timestamp with time zone
);

ALTER TABLE nightmill.result OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.result IS 'Accepted answers with provenance; one effective revision per idempotency key';

COMMENT ON COLUMN nightmill.result.revoked_at IS 'Since when no run reuses it, because a rollback revoked it';

ALTER TABLE nightmill.result ALTER COLUMN result_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME nightmill.result_result_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE nightmill.reuse_usage (
    batch_id bigint NOT NULL,
    answers bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    estimated bigint NOT NULL,
    cached_tokens bigint DEFAULT 0 NOT NULL,
    cache_write_tokens bigint DEFAULT 0 NOT NULL,
    reasoning_tokens bigint DEFAULT 0 NOT NULL
);

ALTER TABLE nightmill.reuse_usage OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.reuse_usage IS 'What reused answers had used when they were made, a row for each settling; replays and older batches have none';

CREATE TABLE nightmill.shard (
    shard_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    first_ordinal bigint NOT NULL,
    last_ordinal bigint NOT NULL,
    items bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    state text DEFAULT 'QUEUED'::text NOT NULL,
    state_reason text DEFAULT 'planned'::text NOT NULL,
    lease integer DEFAULT 0 NOT NULL,
    wake_at timestamp with time zone,
    settled_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    hold_until timestamp with time zone,
    ordinals int8multirange DEFAULT '{(,)}'::int8multirange NOT NULL,
    unsettled bigint,
    failed_at timestamp with time zone,
    CONSTRAINT shard_range CHECK ((first_ordinal <= last_ordinal)),
    CONSTRAINT shard_settled CHECK (((state = 'SETTLED'::text) = (settled_at IS NOT NULL))),
    CONSTRAINT shard_state_known CHECK ((state = ANY (ARRAY['QUEUED'::text, 'RUNNING'::text, 'RETRY_WAIT'::text, 'SETTLED'::text, 'CANCELLED'::text])))
);

ALTER TABLE nightmill.shard OWNER TO nightmill_owner;

COMMENT ON COLUMN nightmill.shard.items IS 'Items that were unsettled when the shard was planned';

COMMENT ON COLUMN nightmill.shard.hold_until IS 'The provider asked to be left alone until then (Retry-After)';

COMMENT ON COLUMN nightmill.shard.ordinals IS 'Holds every item of the range that was unsettled when it was planned, and a few settled ones between them';

COMMENT ON COLUMN nightmill.shard.unsettled IS 'Items without an outcome at its last wake-up; null before the first';

COMMENT ON COLUMN nightmill.shard.failed_at IS 'When its last wake-up ended with the fault that state_reason tells; null once another one has begun';

ALTER TABLE nightmill.shard ALTER COLUMN shard_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME nightmill.shard_shard_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE nightmill.state_edge (
    entity text NOT NULL,
    from_state text NOT NULL,
    to_state text NOT NULL
);

ALTER TABLE nightmill.state_edge OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.state_edge IS 'Legal state edges; equal to domain/states.py (tested)';

CREATE TABLE nightmill.stray_batch (
    account text NOT NULL,
    provider_id text NOT NULL,
    provider_batch_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    found_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    raw_status text NOT NULL,
    booked_at timestamp with time zone,
    answers bigint,
    prompt_tokens bigint,
    cached_tokens bigint,
    completion_tokens bigint,
    CONSTRAINT stray_batch_booked CHECK (((booked_at IS NULL) OR (answers IS NOT NULL)))
);

ALTER TABLE nightmill.stray_batch OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.stray_batch IS 'Batches at a provider that carry a token of this ledger and were given up, or made twice: stopped, read and booked';

COMMENT ON COLUMN nightmill.stray_batch.answers IS 'Lines that were executed, and so are paid for';

CREATE TABLE nightmill.transition (
    transition_id bigint NOT NULL,
    entity text NOT NULL,
    entity_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    from_state text,
    to_state text NOT NULL,
    reason text NOT NULL,
    generation integer,
    made_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    made_by text DEFAULT SESSION_USER NOT NULL
);

ALTER TABLE nightmill.transition OWNER TO nightmill_owner;

COMMENT ON TABLE nightmill.transition IS 'One row per state edge taken by a batch, shard or provider batch';

ALTER TABLE nightmill.transition ALTER COLUMN transition_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME nightmill.transition_transition_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE nightmill.view_definition (
    view_name text NOT NULL,
    job text NOT NULL,
    columns jsonb NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    nullable text[] DEFAULT '{}'::text[] NOT NULL,
    mode text DEFAULT 'replace'::text NOT NULL,
    CONSTRAINT mode_known CHECK ((mode = ANY (ARRAY['replace'::text, 'by_interval'::text, 'by_key'::text])))
);

ALTER TABLE nightmill.view_definition OWNER TO nightmill_owner;

COMMENT ON COLUMN nightmill.view_definition.nullable IS 'Columns that output.py may leave out, whose rows are null then: added after the view was made, or null by type';

CREATE VIEW results.published_intervals AS
 SELECT published.view_name,
    listed.interval_start,
    listed.interval_end,
    listed.batch_id,
    listed.publish_seq,
    listed.shown_since,
    listed.counts,
    listed.gaps,
    batch.gap_facts,
    COALESCE(((batch.gap_facts #>> '{readers,searchable}'::text[]))::boolean, true) AS searchable
   FROM ((nightmill.published
     JOIN nightmill.publication_part listed USING (publish_seq))
     JOIN nightmill.batch ON ((batch.batch_id = listed.batch_id)));

ALTER VIEW results.published_intervals OWNER TO nightmill_owner;

COMMENT ON VIEW results.published_intervals IS 'What each view shows now: a row for each data interval, or for its one batch, with its gaps';

CREATE VIEW results.published_views AS
 SELECT published.view_name,
    published.batch_id,
    published.publish_seq,
    published.published_at AS shown_since,
    publication.counts,
    published.gaps,
        CASE
            WHEN (published.mode <> 'by_interval'::text) THEN batch.gap_facts
            ELSE NULL::jsonb
        END AS gap_facts,
    ( SELECT COALESCE(bool_and(part.searchable), true) AS "coalesce"
           FROM results.published_intervals part
          WHERE (part.view_name = published.view_name)) AS searchable
   FROM ((nightmill.published
     JOIN nightmill.publication USING (publish_seq))
     JOIN nightmill.batch ON ((batch.batch_id = published.batch_id)));

ALTER VIEW results.published_views OWNER TO nightmill_owner;

COMMENT ON VIEW results.published_views IS 'What each view shows now: since when, with which counts and gaps; by_interval: the gaps are in published_intervals';

ALTER TABLE ONLY nightmill.account_limit
    ADD CONSTRAINT account_limit_pkey PRIMARY KEY (account, model);

ALTER TABLE ONLY nightmill.batch
    ADD CONSTRAINT batch_dag_id_run_id_incarnation_key UNIQUE (dag_id, run_id, incarnation);

ALTER TABLE ONLY nightmill.batch
    ADD CONSTRAINT batch_pkey PRIMARY KEY (batch_id);

ALTER TABLE ONLY nightmill.breaker
    ADD CONSTRAINT breaker_pkey PRIMARY KEY (batch_id, kind);

ALTER TABLE ONLY nightmill.contract
    ADD CONSTRAINT contract_job_folder_hash_key UNIQUE (job, folder_hash);

ALTER TABLE ONLY nightmill.contract
    ADD CONSTRAINT contract_pkey PRIMARY KEY (contract_id);

ALTER TABLE ONLY nightmill.dead_letter
    ADD CONSTRAINT dead_letter_batch_id_ordinal_key UNIQUE (batch_id, ordinal);

ALTER TABLE ONLY nightmill.dead_letter
    ADD CONSTRAINT dead_letter_pkey PRIMARY KEY (dead_letter_id);

ALTER TABLE ONLY nightmill.deleted_key
    ADD CONSTRAINT deleted_key_pkey PRIMARY KEY (part_id, source_id);

ALTER TABLE ONLY nightmill.deployment
    ADD CONSTRAINT deployment_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY nightmill.gate_verdict
    ADD CONSTRAINT gate_verdict_pkey PRIMARY KEY (verdict_id);

ALTER TABLE ONLY nightmill.hold
    ADD CONSTRAINT hold_pkey PRIMARY KEY (hold_id);

ALTER TABLE ONLY nightmill.hold
    ADD CONSTRAINT hold_request_key UNIQUE (request);

ALTER TABLE ONLY nightmill.maintenance_action
    ADD CONSTRAINT maintenance_action_pkey PRIMARY KEY (action_id);

ALTER TABLE ONLY nightmill.maintenance_sweep
    ADD CONSTRAINT maintenance_sweep_pkey PRIMARY KEY (sweep);

ALTER TABLE ONLY nightmill.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (number);

ALTER TABLE ONLY nightmill.part_build
    ADD CONSTRAINT part_build_pkey PRIMARY KEY (part_id);

ALTER TABLE ONLY nightmill.payload_segment
    ADD CONSTRAINT payload_segment_pkey PRIMARY KEY (batch_id, segment);

ALTER TABLE ONLY nightmill.price
    ADD CONSTRAINT price_pkey PRIMARY KEY (model, effective_from);

ALTER TABLE ONLY nightmill.provider_batch
    ADD CONSTRAINT provider_batch_account_provider_id_key UNIQUE (account, provider_id);

ALTER TABLE ONLY nightmill.provider_batch
    ADD CONSTRAINT provider_batch_live_disjoint EXCLUDE USING gist (int8range(batch_id, batch_id, '[]'::text) WITH &&, ordinals WITH &&) WHERE ((state <> ALL (ARRAY['COLLECTED'::text, 'ABANDONED'::text])));

ALTER TABLE ONLY nightmill.provider_batch
    ADD CONSTRAINT provider_batch_pkey PRIMARY KEY (provider_batch_id);

ALTER TABLE ONLY nightmill.provider_batch
    ADD CONSTRAINT provider_batch_token_key UNIQUE (token);

ALTER TABLE ONLY nightmill.publication_part
    ADD CONSTRAINT publication_part_pkey PRIMARY KEY (publish_seq, batch_id);

ALTER TABLE ONLY nightmill.publication
    ADD CONSTRAINT publication_pkey PRIMARY KEY (publish_seq);

ALTER TABLE ONLY nightmill.published
    ADD CONSTRAINT published_pkey PRIMARY KEY (view_name);

ALTER TABLE ONLY nightmill.quarantine
    ADD CONSTRAINT quarantine_pkey PRIMARY KEY (quarantine_id);

ALTER TABLE ONLY nightmill.result
    ADD CONSTRAINT result_pkey PRIMARY KEY (result_id);

ALTER TABLE ONLY nightmill.shard
    ADD CONSTRAINT shard_disjoint EXCLUDE USING gist (int8range(batch_id, batch_id, '[]'::text) WITH &&, int8range(first_ordinal, last_ordinal, '[]'::text) WITH &&);

ALTER TABLE ONLY nightmill.shard
    ADD CONSTRAINT shard_pkey PRIMARY KEY (shard_id);

ALTER TABLE ONLY nightmill.state_edge
    ADD CONSTRAINT state_edge_pkey PRIMARY KEY (entity, from_state, to_state);

ALTER TABLE ONLY nightmill.stray_batch
    ADD CONSTRAINT stray_batch_pkey PRIMARY KEY (account, provider_id);

ALTER TABLE ONLY nightmill.transition
    ADD CONSTRAINT transition_pkey PRIMARY KEY (transition_id);

ALTER TABLE ONLY nightmill.view_definition
    ADD CONSTRAINT view_definition_pkey PRIMARY KEY (view_name);

CREATE INDEX batch_job ON nightmill.batch USING btree (job, batch_id DESC);

CREATE UNIQUE INDEX batch_one_child ON nightmill.batch USING btree (parent_batch_id) WHERE ((state <> 'ESTIMATED'::text) AND ((state <> 'CANCELLED'::text) OR (frozen_at IS NOT NULL)));

CREATE INDEX dead_letter_key ON nightmill.dead_letter USING btree (key);

CREATE INDEX gate_verdict_batch ON nightmill.gate_verdict USING btree (batch_id, gate, verdict_id DESC);

CREATE INDEX hold_open ON nightmill.hold USING btree (view_name) WHERE (released_at IS NULL);

CREATE INDEX hold_publication ON nightmill.hold USING btree (view_name, publish_seq);

CREATE INDEX provider_batch_live ON nightmill.provider_batch USING btree (job) WHERE (state <> ALL (ARRAY['COLLECTED'::text, 'ABANDONED'::text]));

CREATE INDEX provider_batch_of_account ON nightmill.provider_batch USING btree (account, model, provider_batch_id DESC);

CREATE INDEX provider_batch_shard ON nightmill.provider_batch USING btree (shard_id);

CREATE INDEX publication_part_by_part ON nightmill.publication_part USING btree (part_id, publish_seq);

CREATE INDEX publication_view ON nightmill.publication USING btree (view_name, publish_seq DESC);

CREATE UNIQUE INDEX result_effective ON nightmill.result USING btree (key) WHERE effective;

CREATE UNIQUE INDEX result_superseded ON nightmill.result USING btree (key, revision) WHERE (NOT effective);

CREATE INDEX reuse_usage_batch ON nightmill.reuse_usage USING btree (batch_id);

CREATE INDEX stray_batch_of_batch ON nightmill.stray_batch USING btree (batch_id);

CREATE INDEX stray_batch_open ON nightmill.stray_batch USING btree (found_at) WHERE (booked_at IS NULL);

CREATE INDEX transition_batch ON nightmill.transition USING btree (batch_id, transition_id);

CREATE TRIGGER guard_batch BEFORE INSERT OR UPDATE ON nightmill.batch FOR EACH ROW EXECUTE FUNCTION nightmill.guard_batch();

CREATE TRIGGER guard_hold BEFORE INSERT OR UPDATE ON nightmill.hold FOR EACH ROW EXECUTE FUNCTION nightmill.guard_hold();

CREATE TRIGGER guard_payload_segment BEFORE INSERT OR UPDATE ON nightmill.payload_segment FOR EACH ROW EXECUTE FUNCTION nightmill.guard_payload_segment();

CREATE TRIGGER guard_provider_batch BEFORE INSERT OR UPDATE ON nightmill.provider_batch FOR EACH ROW EXECUTE FUNCTION nightmill.guard_provider_batch();

CREATE TRIGGER guard_publication_part AFTER INSERT ON nightmill.publication_part REFERENCING NEW TABLE AS listed FOR EACH STATEMENT EXECUTE FUNCTION nightmill.guard_publication_part();

CREATE TRIGGER guard_published BEFORE INSERT OR UPDATE ON nightmill.published FOR EACH ROW EXECUTE FUNCTION nightmill.guard_published();

CREATE TRIGGER guard_settling AFTER INSERT ON nightmill.attempt REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION nightmill.guard_settling();

CREATE TRIGGER guard_settling AFTER INSERT ON nightmill.outcome REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION nightmill.guard_settling();

CREATE TRIGGER guard_shard BEFORE INSERT OR UPDATE ON nightmill.shard FOR EACH ROW EXECUTE FUNCTION nightmill.guard_shard();

CREATE TRIGGER guard_shard_delete BEFORE DELETE ON nightmill.shard FOR EACH ROW EXECUTE FUNCTION nightmill.guard_shard_delete();

ALTER TABLE ONLY nightmill.batch
    ADD CONSTRAINT batch_contract_id_fkey FOREIGN KEY (contract_id) REFERENCES nightmill.contract(contract_id);

ALTER TABLE ONLY nightmill.batch
    ADD CONSTRAINT batch_parent_batch_id_fkey FOREIGN KEY (parent_batch_id) REFERENCES nightmill.batch(batch_id);

ALTER TABLE ONLY nightmill.batch
    ADD CONSTRAINT batch_payload_batch_id_fkey FOREIGN KEY (payload_batch_id) REFERENCES nightmill.batch(batch_id);

ALTER TABLE ONLY nightmill.breaker
    ADD CONSTRAINT breaker_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES nightmill.batch(batch_id);

ALTER TABLE ONLY nightmill.gate_verdict
    ADD CONSTRAINT gate_verdict_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES nightmill.batch(batch_id);

ALTER TABLE ONLY nightmill.hold
    ADD CONSTRAINT hold_publish_seq_fkey FOREIGN KEY (publish_seq) REFERENCES nightmill.publication(publish_seq);

ALTER TABLE ONLY nightmill.part_build
    ADD CONSTRAINT part_build_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES nightmill.batch(batch_id);

ALTER TABLE ONLY nightmill.part_build
    ADD CONSTRAINT part_build_view_name_fkey FOREIGN KEY (view_name) REFERENCES nightmill.view_definition(view_name);

ALTER TABLE ONLY nightmill.payload_segment
    ADD CONSTRAINT payload_segment_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES nightmill.batch(batch_id);

ALTER TABLE ONLY nightmill.provider_batch
    ADD CONSTRAINT provider_batch_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES nightmill.batch(batch_id);

ALTER TABLE ONLY nightmill.provider_batch
    ADD CONSTRAINT provider_batch_shard_id_fkey FOREIGN KEY (shard_id) REFERENCES nightmill.shard(shard_id);

ALTER TABLE ONLY nightmill.publication
    ADD CONSTRAINT publication_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES nightmill.batch(batch_id);

ALTER TABLE ONLY nightmill.published
    ADD CONSTRAINT published_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES nightmill.batch(batch_id);

ALTER TABLE ONLY nightmill.published
    ADD CONSTRAINT published_publish_seq_fkey FOREIGN KEY (publish_seq) REFERENCES nightmill.publication(publish_seq);

ALTER TABLE ONLY nightmill.reuse_usage
    ADD CONSTRAINT reuse_usage_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES nightmill.batch(batch_id);

ALTER TABLE ONLY nightmill.shard
    ADD CONSTRAINT shard_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES nightmill.batch(batch_id);

ALTER TABLE ONLY nightmill.stray_batch
    ADD CONSTRAINT stray_batch_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES nightmill.batch(batch_id);

ALTER TABLE ONLY nightmill.stray_batch
    ADD CONSTRAINT stray_batch_provider_batch_id_fkey FOREIGN KEY (provider_batch_id) REFERENCES nightmill.provider_batch(provider_batch_id);

GRANT USAGE ON SCHEMA nightmill TO nightmill_writer;
GRANT USAGE ON SCHEMA nightmill TO nightmill_reader;
GRANT USAGE ON SCHEMA nightmill TO nightmill_console;
GRANT USAGE ON SCHEMA nightmill TO nightmill_view_owner;
GRANT USAGE ON SCHEMA nightmill TO nightmill_reviewer;

GRANT USAGE ON SCHEMA results TO nightmill_writer;
GRANT USAGE ON SCHEMA results TO nightmill_reader;
GRANT USAGE ON SCHEMA results TO nightmill_view_owner;

REVOKE ALL ON FUNCTION nightmill.attach_partition(parent text, batch_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION nightmill.attach_partition(parent text, batch_id bigint) TO nightmill_writer;

REVOKE ALL ON FUNCTION nightmill.changed_rows(new_batch bigint, old_batch bigint, publication bigint, fields text[], tenants_first text[], most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION nightmill.changed_rows(new_batch bigint, old_batch bigint, publication bigint, fields text[], tenants_first text[], most integer) TO nightmill_reviewer;

REVOKE ALL ON FUNCTION nightmill.create_partition(parent text, batch_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION nightmill.create_partition(parent text, batch_id bigint) TO nightmill_writer;

REVOKE ALL ON FUNCTION nightmill.cut_values(shown text, beside text, fields text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.drop_built_part(parent text, part_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION nightmill.drop_built_part(parent text, part_id bigint) TO nightmill_writer;

REVOKE ALL ON FUNCTION nightmill.drop_detached_partition(parent text, batch_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.drop_gap_rows(of_batch bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION nightmill.drop_gap_rows(of_batch bigint) TO nightmill_writer;

REVOKE ALL ON FUNCTION nightmill.fence_exclusive(batch_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION nightmill.fence_exclusive(batch_id bigint) TO nightmill_writer;

REVOKE ALL ON FUNCTION nightmill.fence_shared(batch_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION nightmill.fence_shared(batch_id bigint) TO nightmill_writer;

REVOKE ALL ON FUNCTION nightmill.guard_batch() FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.guard_hold() FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.guard_payload_segment() FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.guard_provider_batch() FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.guard_publication_part() FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.guard_published() FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.guard_settling() FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.guard_shard() FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.guard_shard_delete() FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.hold_partition(child text) FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.index_partition(parent text, batch_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION nightmill.index_partition(parent text, batch_id bigint) TO nightmill_writer;

REVOKE ALL ON FUNCTION nightmill.part_of(one bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.partition_name(parent text, batch_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION nightmill.partition_name(parent text, batch_id bigint) TO nightmill_writer;
GRANT ALL ON FUNCTION nightmill.partition_name(parent text, batch_id bigint) TO nightmill_console;

REVOKE ALL ON FUNCTION nightmill.record_transition(entity text, entity_id bigint, batch_id bigint, from_state text, to_state text, reason text, generation integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.reported_number(usage jsonb, VARIADIC path text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION nightmill.reported_number(usage jsonb, VARIADIC path text[]) TO nightmill_writer;
GRANT ALL ON FUNCTION nightmill.reported_number(usage jsonb, VARIADIC path text[]) TO nightmill_console;

REVOKE ALL ON FUNCTION nightmill.reported_usage(usage jsonb, OUT prompt_tokens numeric, OUT cached_tokens numeric, OUT cache_write_tokens numeric, OUT completion_tokens numeric, OUT reasoning_tokens numeric, OUT is_odd boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION nightmill.reported_usage(usage jsonb, OUT prompt_tokens numeric, OUT cached_tokens numeric, OUT cache_write_tokens numeric, OUT completion_tokens numeric, OUT reasoning_tokens numeric, OUT is_odd boolean) TO nightmill_writer;
GRANT ALL ON FUNCTION nightmill.reported_usage(usage jsonb, OUT prompt_tokens numeric, OUT cached_tokens numeric, OUT cache_write_tokens numeric, OUT completion_tokens numeric, OUT reasoning_tokens numeric, OUT is_odd boolean) TO nightmill_console;

REVOKE ALL ON FUNCTION nightmill.require_edge(entity text, entity_id bigint, from_state text, to_state text) FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.require_partitioned(parent text) FROM PUBLIC;

REVOKE ALL ON FUNCTION nightmill.rows_compared_with(new_batch bigint, old_batch bigint, publication bigint) FROM PUBLIC;

GRANT SELECT,INSERT,UPDATE ON TABLE nightmill.account_limit TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.account_limit TO nightmill_console;

GRANT SELECT,INSERT ON TABLE nightmill.attempt TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.attempt TO nightmill_console;

GRANT SELECT,INSERT ON TABLE nightmill.batch TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.batch TO nightmill_console;

GRANT UPDATE(state) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(state_reason) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(blocked_from) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(blocked_by) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(generation) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(params) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(note) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(source_query) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(source_parameters) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(source_snapshot) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(item_count) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(prompt_tokens) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(content_hash) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(estimate) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(counts) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(frozen_at) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(ended_at) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(max_tries) ON TABLE nightmill.batch TO nightmill_writer;

GRANT UPDATE(gap_facts) ON TABLE nightmill.batch TO nightmill_writer;

GRANT SELECT ON TABLE nightmill.price TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.price TO nightmill_console;

GRANT SELECT,INSERT ON TABLE nightmill.provider_batch TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.provider_batch TO nightmill_console;

GRANT UPDATE(state) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(state_reason) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(input_file_id) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(provider_id) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(adopted) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(raw_status) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(output_file_id) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(error_file_id) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(counts) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(usage) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(problems) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(uploaded_at) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(submitted_at) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(ended_at) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(collected_at) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(refused) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(suspects) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(taken_at) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(over_at) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(unknown_since) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(stop_asked_at) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT UPDATE(provider_made_at) ON TABLE nightmill.provider_batch TO nightmill_writer;

GRANT SELECT ON TABLE nightmill.attempt_cost TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.attempt_cost TO nightmill_console;

GRANT SELECT,INSERT,UPDATE ON TABLE nightmill.breaker TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.breaker TO nightmill_console;

GRANT SELECT,INSERT ON TABLE nightmill.contract TO nightmill_writer;

GRANT SELECT,INSERT ON TABLE nightmill.dead_letter TO nightmill_writer;

GRANT SELECT,INSERT,DELETE ON TABLE nightmill.deleted_key TO nightmill_writer;

GRANT SELECT,INSERT ON TABLE nightmill.deployment TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.deployment TO nightmill_console;

GRANT SELECT,INSERT ON TABLE nightmill.gate_verdict TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.gate_verdict TO nightmill_console;

GRANT SELECT,INSERT ON TABLE nightmill.hold TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.hold TO nightmill_reader;
GRANT SELECT ON TABLE nightmill.hold TO nightmill_console;

GRANT UPDATE(revoked) ON TABLE nightmill.hold TO nightmill_writer;

GRANT UPDATE(released_at) ON TABLE nightmill.hold TO nightmill_writer;

GRANT UPDATE(released_by) ON TABLE nightmill.hold TO nightmill_writer;

GRANT SELECT ON TABLE nightmill.item TO nightmill_writer;

GRANT SELECT(batch_id) ON TABLE nightmill.item TO nightmill_console;

GRANT SELECT(ordinal) ON TABLE nightmill.item TO nightmill_console;

GRANT SELECT(tokens) ON TABLE nightmill.item TO nightmill_console;

GRANT SELECT,INSERT ON TABLE nightmill.outcome TO nightmill_writer;

GRANT SELECT(batch_id) ON TABLE nightmill.outcome TO nightmill_console;

GRANT SELECT(ordinal) ON TABLE nightmill.outcome TO nightmill_console;

GRANT SELECT(kind) ON TABLE nightmill.outcome TO nightmill_console;

GRANT SELECT(result_id) ON TABLE nightmill.outcome TO nightmill_console;

GRANT SELECT ON TABLE nightmill.item_bucket TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.item_bucket TO nightmill_console;

GRANT SELECT,INSERT ON TABLE nightmill.maintenance_action TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.maintenance_action TO nightmill_console;

GRANT SELECT,INSERT,UPDATE ON TABLE nightmill.maintenance_sweep TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.maintenance_sweep TO nightmill_console;

GRANT USAGE ON SEQUENCE nightmill.merged_part TO nightmill_writer;

GRANT SELECT ON TABLE nightmill.migration TO nightmill_writer;

GRANT SELECT,INSERT,DELETE ON TABLE nightmill.part_build TO nightmill_writer;

GRANT SELECT,INSERT ON TABLE nightmill.payload_segment TO nightmill_writer;

GRANT SELECT ON TABLE nightmill.provider_batch_usage TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.provider_batch_usage TO nightmill_console;

GRANT SELECT,INSERT ON TABLE nightmill.publication TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.publication TO nightmill_reader;
GRANT SELECT ON TABLE nightmill.publication TO nightmill_console;

GRANT SELECT,INSERT ON TABLE nightmill.publication_part TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.publication_part TO nightmill_reader;
GRANT SELECT ON TABLE nightmill.publication_part TO nightmill_view_owner;
GRANT SELECT ON TABLE nightmill.publication_part TO nightmill_console;

GRANT SELECT,INSERT ON TABLE nightmill.published TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.published TO nightmill_reader;
GRANT SELECT ON TABLE nightmill.published TO nightmill_console;
GRANT SELECT ON TABLE nightmill.published TO nightmill_view_owner;

GRANT UPDATE(batch_id) ON TABLE nightmill.published TO nightmill_writer;

GRANT UPDATE(publish_seq) ON TABLE nightmill.published TO nightmill_writer;

GRANT UPDATE(published_at) ON TABLE nightmill.published TO nightmill_writer;

GRANT UPDATE(gaps) ON TABLE nightmill.published TO nightmill_writer;

GRANT UPDATE(mode) ON TABLE nightmill.published TO nightmill_writer;

GRANT UPDATE(part_id) ON TABLE nightmill.published TO nightmill_writer;

GRANT SELECT,INSERT ON TABLE nightmill.quarantine TO nightmill_writer;

GRANT SELECT,INSERT ON TABLE nightmill.result TO nightmill_writer;

GRANT SELECT(result_id) ON TABLE nightmill.result TO nightmill_console;

GRANT UPDATE(revision) ON TABLE nightmill.result TO nightmill_writer;

GRANT UPDATE(effective) ON TABLE nightmill.result TO nightmill_writer;

GRANT UPDATE(citations) ON TABLE nightmill.result TO nightmill_writer;

GRANT UPDATE(validators_hash) ON TABLE nightmill.result TO nightmill_writer;

GRANT SELECT(prompt_tokens) ON TABLE nightmill.result TO nightmill_console;

GRANT SELECT(completion_tokens) ON TABLE nightmill.result TO nightmill_console;

GRANT SELECT(cached_tokens) ON TABLE nightmill.result TO nightmill_console;

GRANT SELECT(cache_write_tokens) ON TABLE nightmill.result TO nightmill_console;

GRANT SELECT(reasoning_tokens) ON TABLE nightmill.result TO nightmill_console;

GRANT UPDATE(revoked_at) ON TABLE nightmill.result TO nightmill_writer;

GRANT USAGE ON SEQUENCE nightmill.result_result_id_seq TO nightmill_writer;

GRANT SELECT,INSERT ON TABLE nightmill.reuse_usage TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.reuse_usage TO nightmill_console;

GRANT SELECT,INSERT,DELETE ON TABLE nightmill.shard TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.shard TO nightmill_console;

GRANT UPDATE(state) ON TABLE nightmill.shard TO nightmill_writer;

GRANT UPDATE(state_reason) ON TABLE nightmill.shard TO nightmill_writer;

GRANT UPDATE(lease) ON TABLE nightmill.shard TO nightmill_writer;

GRANT UPDATE(wake_at) ON TABLE nightmill.shard TO nightmill_writer;

GRANT UPDATE(settled_at) ON TABLE nightmill.shard TO nightmill_writer;

GRANT UPDATE(hold_until) ON TABLE nightmill.shard TO nightmill_writer;

GRANT UPDATE(unsettled) ON TABLE nightmill.shard TO nightmill_writer;

GRANT UPDATE(failed_at) ON TABLE nightmill.shard TO nightmill_writer;

GRANT SELECT ON TABLE nightmill.state_edge TO nightmill_writer;

GRANT SELECT,INSERT,UPDATE ON TABLE nightmill.stray_batch TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.stray_batch TO nightmill_console;

GRANT SELECT ON TABLE nightmill.transition TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.transition TO nightmill_console;

GRANT SELECT ON TABLE nightmill.view_definition TO nightmill_writer;
GRANT SELECT ON TABLE nightmill.view_definition TO nightmill_console;

GRANT SELECT ON TABLE results.published_intervals TO nightmill_reader;
GRANT SELECT ON TABLE results.published_intervals TO nightmill_writer;

GRANT SELECT ON TABLE results.published_views TO nightmill_reader;
GRANT SELECT ON TABLE results.published_views TO nightmill_writer;
