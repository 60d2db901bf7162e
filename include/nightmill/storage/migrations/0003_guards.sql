-- The database refuses what the code must never do: illegal edges, illegal outcomes, writes to an ended batch.

create function nightmill.record_transition(
    entity text, entity_id bigint, batch_id bigint, from_state text, to_state text, reason text, generation int
) returns void language sql security definer set search_path = pg_catalog as $$
    insert into nightmill.transition (entity, entity_id, batch_id, from_state, to_state, reason, generation)
    values (entity, entity_id, batch_id, from_state, to_state, reason, generation)
$$;

create function nightmill.require_edge(entity text, entity_id bigint, from_state text, to_state text) returns void
language plpgsql stable security definer set search_path = pg_catalog as $$
begin
    if not exists (
        select from nightmill.state_edge as edge
        where edge.entity = require_edge.entity and edge.from_state = require_edge.from_state
            and edge.to_state = require_edge.to_state
    ) then
        raise exception '% % cannot go from % to %', entity, entity_id, from_state, to_state using errcode = 'NM001';
    end if;
end $$;

create function nightmill.guard_batch() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
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
create trigger guard_batch before insert or update on nightmill.batch
    for each row execute function nightmill.guard_batch();

create function nightmill.guard_shard() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
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
create trigger guard_shard before insert or update on nightmill.shard
    for each row execute function nightmill.guard_shard();

create function nightmill.guard_shard_delete() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    if old.state <> 'QUEUED' then
        raise exception 'shard % is %: only a shard that never ran can be planned anew', old.shard_id, old.state
            using errcode = 'NM001';
    end if;
    return old;
end $$;
create trigger guard_shard_delete before delete on nightmill.shard
    for each row execute function nightmill.guard_shard_delete();

create function nightmill.guard_provider_batch() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
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
create trigger guard_provider_batch before insert or update on nightmill.provider_batch
    for each row execute function nightmill.guard_provider_batch();

-- Where a batch's payload lies is part of its frozen manifest.
create function nightmill.guard_payload_segment() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    if (select frozen_at from nightmill.batch where batch_id = new.batch_id) is not null then
        raise exception 'batch %: a frozen manifest never changes', new.batch_id using errcode = 'NM003';
    end if;
    return new;
end $$;
create trigger guard_payload_segment before insert or update on nightmill.payload_segment
    for each row execute function nightmill.guard_payload_segment();

-- Outcomes, attempts and staging rows may be written only while their batch can still settle items, by nobody after
-- a cancel: the shared fence makes this exact, because cancel holds the exclusive one. Once per statement, not per
-- row. Each inserting statement writes for one batch.
create function nightmill.guard_settling() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
declare
    touched bigint;
    state_now text;
    planned bigint;
begin
    for touched in select distinct batch_id from written loop
        perform nightmill.fence_shared(touched);
        select state, item_count into state_now, planned from nightmill.batch where batch_id = touched;
        if state_now is null or state_now not in ('PLANNING', 'QUEUED', 'RUNNING', 'BLOCKED') then
            raise exception 'batch % is %: nothing can be settled in it', touched, coalesce(state_now, 'unknown')
                using errcode = 'NM004';
        end if;
        if exists (select from written where batch_id = touched and (ordinal < 0 or ordinal >= planned)) then
            raise exception 'batch %: an ordinal lies outside its manifest of % items', touched, planned
                using errcode = 'NM004';
        end if;
    end loop;
    return null;
end $$;
create trigger guard_settling after insert on nightmill.outcome
    referencing new table as written for each statement execute function nightmill.guard_settling();
create trigger guard_settling after insert on nightmill.attempt
    referencing new table as written for each statement execute function nightmill.guard_settling();
