-- The ledger's schema. A change is a further numbered file beside this one (0002_..., 0003_...).
--
-- Contents: 1 states and their history, 2 the fence, 3 contracts and the deployment, 4 batches, 5 items, 6 shards,
-- 7 provider batches, 8 attempts, results and outcomes, 9 prices and usage, 10 views, rows and parts, 11 publication,
-- 12 gates, 13 holds, 14 what reviewers may compare, 15 maintenance, 16 roles and grants.
--
-- init_db (storage/migrate.py) makes the roles, the schemas nightmill and results and the table nightmill.migration
-- before it runs this file as nightmill_owner. It then loads the prices of storage/prices.yaml.
--
-- Error codes that functions raise: NM001 an edge or a change that the ledger does not allow, NM002 a generation or a
-- lease that would fall, NM003 a change of a frozen manifest, NM004 a write to a batch that does not settle, NM005 a
-- partition in the wrong place.

-- Nobody calls a function without a grant. A trigger function that everybody may use could be put on a table of one's
-- own, where it would write history as the owner. Every function names its search path with pg_temp last, so that a
-- table or function that a session puts into pg_temp is not found first.
alter default privileges revoke execute on functions from public;


-- 1 States and their history ------------------------------------------------------------------------------------------

create table nightmill.state_edge (
    entity text not null,
    from_state text not null,
    to_state text not null,
    primary key (entity, from_state, to_state)
);
comment on table nightmill.state_edge is 'Legal state edges; equal to domain/states.py (tested)';

-- STAGED is a preview: it passed its gates and no reader sees it. It is published later, or cancelled by a person or
-- by retention.
insert into nightmill.state_edge values
    ('batch', 'CREATED', 'PLANNING'),
    ('batch', 'CREATED', 'CANCELLED'),
    ('batch', 'PLANNING', 'QUEUED'),
    ('batch', 'PLANNING', 'BLOCKED'),
    ('batch', 'PLANNING', 'CANCELLED'),
    ('batch', 'QUEUED', 'RUNNING'),
    ('batch', 'QUEUED', 'VALIDATING'),
    ('batch', 'QUEUED', 'ESTIMATED'),
    ('batch', 'QUEUED', 'BLOCKED'),
    ('batch', 'QUEUED', 'CANCELLED'),
    ('batch', 'RUNNING', 'VALIDATING'),
    ('batch', 'RUNNING', 'BLOCKED'),
    ('batch', 'RUNNING', 'CANCELLED'),
    ('batch', 'VALIDATING', 'STAGED'),
    ('batch', 'VALIDATING', 'PUBLISHED'),
    ('batch', 'VALIDATING', 'REJECTED'),
    ('batch', 'VALIDATING', 'PARTIAL_FAILED'),
    ('batch', 'VALIDATING', 'BLOCKED'),
    ('batch', 'VALIDATING', 'CANCELLED'),
    ('batch', 'STAGED', 'VALIDATING'),
    ('batch', 'STAGED', 'CANCELLED'),
    ('batch', 'BLOCKED', 'PLANNING'),
    ('batch', 'BLOCKED', 'QUEUED'),
    ('batch', 'BLOCKED', 'RUNNING'),
    ('batch', 'BLOCKED', 'VALIDATING'),
    ('batch', 'BLOCKED', 'CANCELLED'),
    ('shard', 'QUEUED', 'RUNNING'),
    ('shard', 'QUEUED', 'CANCELLED'),
    ('shard', 'RUNNING', 'SETTLED'),
    ('shard', 'RUNNING', 'RETRY_WAIT'),
    ('shard', 'RUNNING', 'CANCELLED'),
    ('shard', 'RETRY_WAIT', 'RUNNING'),
    ('shard', 'RETRY_WAIT', 'CANCELLED'),
    ('provider_batch', 'INTENT', 'CREATING'),
    ('provider_batch', 'INTENT', 'ABANDONED'),
    ('provider_batch', 'CREATING', 'SUBMITTED'),
    ('provider_batch', 'CREATING', 'ABANDONED'),
    ('provider_batch', 'SUBMITTED', 'ENDED'),
    ('provider_batch', 'SUBMITTED', 'ABANDONED'),
    ('provider_batch', 'ENDED', 'COLLECTED'),
    ('provider_batch', 'ENDED', 'ABANDONED');

create table nightmill.transition (
    transition_id bigint generated always as identity primary key,
    entity text not null,
    entity_id bigint not null,
    batch_id bigint not null,
    from_state text,
    to_state text not null,
    reason text not null,
    generation int,
    made_at timestamptz not null default clock_timestamp(),
    made_by text not null default session_user
);
create index transition_batch on nightmill.transition (batch_id, transition_id);
comment on table nightmill.transition is 'One row per state edge taken by a batch, shard or provider batch';

create function nightmill.record_transition(
    entity text, entity_id bigint, batch_id bigint, from_state text, to_state text, reason text, generation int
) returns void language sql security definer set search_path = pg_catalog, pg_temp as $$
    insert into nightmill.transition (entity, entity_id, batch_id, from_state, to_state, reason, generation)
    values (entity, entity_id, batch_id, from_state, to_state, reason, generation)
$$;

create function nightmill.require_edge(entity text, entity_id bigint, from_state text, to_state text) returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not exists (
        select from nightmill.state_edge as edge
        where edge.entity = require_edge.entity and edge.from_state = require_edge.from_state
            and edge.to_state = require_edge.to_state
    ) then
        raise exception '% % cannot go from % to %', entity, entity_id, from_state, to_state using errcode = 'NM001';
    end if;
end $$;


-- 2 The fence ---------------------------------------------------------------------------------------------------------
-- Both forms use one key space of advisory locks: class 7106 ("nm"), the batch id.

create function nightmill.fence_shared(batch_id bigint) returns void
language sql set search_path = pg_catalog, pg_temp as $$ select pg_advisory_xact_lock_shared(7106, batch_id::int) $$;
comment on function nightmill.fence_shared(bigint) is
    'Taken first by every transaction that writes for a batch; read generation and lease in the NEXT statement';

create function nightmill.fence_exclusive(batch_id bigint) returns void
language sql set search_path = pg_catalog, pg_temp as $$ select pg_advisory_xact_lock(7106, batch_id::int) $$;
comment on function nightmill.fence_exclusive(bigint) is
    'Taken first by batch edges, cancel and takeover; never after the shared form';


-- 3 Contracts and the deployment --------------------------------------------------------------------------------------

create table nightmill.contract (
    contract_id bigint generated always as identity primary key,
    job text not null,
    folder_hash text not null,
    files jsonb not null,
    prompt_version text not null,
    output_schema_version text not null,
    model_policy_version text not null,
    transform_name text not null,
    transform_version text not null,
    validators_hash text not null,
    created_at timestamptz not null default clock_timestamp(),
    unique (job, folder_hash)
);
comment on table nightmill.contract is 'Pinned copies of job folders: file name -> text; verified against folder_hash';

-- Batches are found by DAG and run, and another Airflow has runs of the same names.
create table nightmill.deployment (
    deployment_id text not null,
    pinned_at timestamptz not null default clock_timestamp(),
    only_row boolean primary key default true check (only_row)
);
comment on table nightmill.deployment is
    'The Airflow variable nightmill_deployment of the one Airflow that uses this ledger; empty until its first task';


-- 4 Batches -----------------------------------------------------------------------------------------------------------

create table nightmill.batch (
    batch_id bigint generated always as identity primary key,
    job text not null,
    view_name text not null,
    contract_id bigint not null references nightmill.contract,
    -- which run it belongs to; another incarnation where the run was cleared after its batch ended unpublished
    dag_id text not null,
    run_id text not null,
    incarnation int not null,
    max_tries int not null default 5, -- 5 is what a task of a job begins with
    data_interval_start timestamptz,
    data_interval_end timestamptz,
    -- where it stands
    state text not null default 'CREATED',
    state_reason text not null default 'created',
    blocked_from text,
    blocked_by text,
    generation int not null default 1,
    -- what was asked for
    dry_run boolean not null default false,
    params jsonb not null default '{}',
    note text,
    requested_by text,
    parent_batch_id bigint references nightmill.batch, -- a replay's
    payload_batch_id bigint references nightmill.batch, -- whose payload objects it reads; null = its own
    -- its manifest, which never changes once it is frozen
    source_query text,
    source_parameters jsonb,
    source_snapshot text,
    item_count bigint,
    prompt_tokens bigint,
    content_hash bytea,
    -- what came of it
    estimate jsonb,
    counts jsonb,
    gap_facts jsonb,
    created_at timestamptz not null default clock_timestamp(),
    frozen_at timestamptz,
    ended_at timestamptz,
    retired_at timestamptz,
    unique (dag_id, run_id, incarnation),
    constraint batch_state_known check (state in ('CREATED', 'PLANNING', 'QUEUED', 'RUNNING', 'VALIDATING',
        'STAGED', 'PUBLISHED', 'ESTIMATED', 'REJECTED', 'PARTIAL_FAILED', 'CANCELLED', 'BLOCKED')),
    constraint batch_ended check ((state in ('PUBLISHED', 'ESTIMATED', 'REJECTED', 'PARTIAL_FAILED', 'CANCELLED'))
        = (ended_at is not null)),
    constraint batch_blocked check ((state = 'BLOCKED') = (blocked_from is not null)),
    constraint batch_frozen check (state in ('CREATED', 'CANCELLED') or (frozen_at is not null
        and item_count is not null and content_hash is not null))
);
create index batch_job on nightmill.batch (job, batch_id desc);
-- One child per parent. A child that came to nothing does not count: cancelled before it was frozen, or a dry run.
create unique index batch_one_child on nightmill.batch (parent_batch_id)
    where state <> 'ESTIMATED' and (state <> 'CANCELLED' or frozen_at is not null);
comment on column nightmill.batch.max_tries is
    'Airflow''s max_tries of freeze_snapshot when it last saw this batch; a greater one says that it was cleared since';
comment on column nightmill.batch.gap_facts is
    'How much is accepted, which gaps there are, how each is to be filled, and what readers may see (domain/gaps.py)';
comment on column nightmill.batch.retired_at is
    'When retention dropped its partitions, payloads and dead letters; the row itself stays';

create function nightmill.guard_batch() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
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

create table nightmill.breaker (
    batch_id bigint not null references nightmill.batch,
    kind text not null,
    state text not null,
    since timestamptz not null default clock_timestamp(),
    cause text,
    remedy text,
    primary key (batch_id, kind),
    constraint breaker_kind_known check (kind in ('failures', 'cancelled')),
    constraint breaker_state_known check (state in ('watching', 'passed', 'probing', 'open')),
    constraint breaker_open check ((state = 'open') = (cause is not null and remedy is not null))
);
comment on table nightmill.breaker is
    'Why a batch sends nothing more before a person clears its task (open), or only a few requests at first (probing)';
comment on column nightmill.breaker.since is 'Only what settles later counts';


-- 5 Items -------------------------------------------------------------------------------------------------------------

-- A list partition per batch, as for attempt and outcome (section 10).
create table nightmill.item (
    batch_id bigint not null,
    ordinal bigint not null,
    key bytea not null,
    source_id text not null,
    source_version text not null,
    content_hash bytea not null,
    tenant text not null,
    domain text not null,
    tokens int not null,
    skip_reason text,
    skip_class text,
    skip_message text,
    required boolean not null default false,
    constraint item_never_sent
        check ((skip_reason is null) = (skip_class is null) and (skip_message is null or skip_reason is not null))
) partition by list (batch_id);
comment on column nightmill.item.tokens is 'Prompt tokens of the rendered request';
comment on column nightmill.item.skip_reason is
    'Why this item is never sent: the code of what a check of inputs found, or deleted; else null';
comment on column nightmill.item.skip_class is 'The failure class of skip_reason';
comment on column nightmill.item.skip_message is
    'The message of its dead letter; null beside a skip_reason: the item is left out without one';
comment on column nightmill.item.required is 'source.columns.required: a missing answer is never allowed';

-- A payload object is checked as it lies in the store, before anything unpacks it.
create table nightmill.payload_segment (
    batch_id bigint not null references nightmill.batch,
    segment int not null,
    first_ordinal bigint not null,
    last_ordinal bigint not null,
    object_path text not null,
    object_bytes bigint not null,
    raw_sha256 bytea,
    object_sha256 bytea,
    primary key (batch_id, segment),
    check (first_ordinal <= last_ordinal),
    constraint payload_segment_checksum check (num_nonnulls(raw_sha256, object_sha256) = 1)
);
comment on table nightmill.payload_segment is 'Payload objects in item order: zstd JSON lines, one line per ordinal';
comment on column nightmill.payload_segment.raw_sha256 is 'Of the unpacked lines; of objects older than object_sha256';

-- Where a batch's payload lies is part of its frozen manifest.
create function nightmill.guard_payload_segment() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    if (select frozen_at from nightmill.batch where batch_id = new.batch_id) is not null then
        raise exception 'batch %: a frozen manifest never changes', new.batch_id using errcode = 'NM003';
    end if;
    return new;
end $$;
create trigger guard_payload_segment before insert or update on nightmill.payload_segment
    for each row execute function nightmill.guard_payload_segment();


-- 6 Shards ------------------------------------------------------------------------------------------------------------

create table nightmill.shard (
    shard_id bigint generated always as identity primary key,
    batch_id bigint not null references nightmill.batch,
    first_ordinal bigint not null,
    last_ordinal bigint not null,
    -- On a night that reuses nearly everything, its few unsettled items lie far apart: only these places are read.
    ordinals int8multirange not null default '{(,)}',
    items bigint not null,
    prompt_tokens bigint not null,
    state text not null default 'QUEUED',
    state_reason text not null default 'planned',
    lease int not null default 0,
    unsettled bigint,
    wake_at timestamptz,
    hold_until timestamptz,
    failed_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    settled_at timestamptz,
    constraint shard_state_known check (state in ('QUEUED', 'RUNNING', 'RETRY_WAIT', 'SETTLED', 'CANCELLED')),
    constraint shard_settled check ((state = 'SETTLED') = (settled_at is not null)),
    constraint shard_range check (first_ordinal <= last_ordinal),
    constraint shard_disjoint exclude using gist
        (int8range(batch_id, batch_id, '[]') with &&, int8range(first_ordinal, last_ordinal, '[]') with &&)
);
comment on column nightmill.shard.ordinals is
    'Holds every item of the range that was unsettled when it was planned, and a few settled ones between them';
comment on column nightmill.shard.items is 'Items that were unsettled when the shard was planned';
comment on column nightmill.shard.unsettled is 'Items without an outcome at its last wake-up; null before the first';
comment on column nightmill.shard.hold_until is 'The provider asked to be left alone until then (Retry-After)';
comment on column nightmill.shard.failed_at is
    'When its last wake-up ended with the fault that state_reason tells; null once another one has begun';

create function nightmill.guard_shard() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
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
set search_path = pg_catalog, pg_temp as $$
begin
    if old.state <> 'QUEUED' then
        raise exception 'shard % is %: only a shard that never ran can be planned anew', old.shard_id, old.state
            using errcode = 'NM001';
    end if;
    return old;
end $$;
create trigger guard_shard_delete before delete on nightmill.shard
    for each row execute function nightmill.guard_shard_delete();


-- 7 Provider batches --------------------------------------------------------------------------------------------------

create table nightmill.provider_batch (
    provider_batch_id bigint generated always as identity primary key,
    batch_id bigint not null references nightmill.batch,
    shard_id bigint not null references nightmill.shard,
    job text not null,
    state text not null default 'INTENT',
    state_reason text not null default 'intent',
    -- whose it is and what is in it
    token text not null unique,
    account text not null,
    adapter text not null,
    model text not null,
    ordinals int8multirange not null,
    requests bigint not null,
    prompt_tokens bigint not null,
    file_bytes bigint not null,
    -- the provider's names for it, and what it says about it
    input_ref text,
    provider_id text,
    adopted boolean,
    raw_status text,
    status text,
    stopped text,
    requests_done bigint,
    requests_answered bigint,
    requests_total bigint,
    result_refs jsonb not null default '{}',
    usage jsonb,
    refused text,
    suspects jsonb,
    -- when each thing was seen
    intent_at timestamptz not null default clock_timestamp(),
    creating_at timestamptz,
    submitted_at timestamptz,
    provider_made_at timestamptz,
    taken_at timestamptz,
    unknown_since timestamptz,
    stop_asked_at timestamptz,
    over_at timestamptz,
    ended_at timestamptz,
    collected_at timestamptz,
    window_ends_at timestamptz,
    results_until timestamptz,
    evidence_deleted_at timestamptz,
    unique (account, provider_id),
    constraint provider_batch_state_known check (state in ('INTENT', 'CREATING', 'SUBMITTED', 'ENDED', 'COLLECTED',
        'ABANDONED')),
    constraint provider_batch_create_is_dated check (state in ('INTENT', 'ABANDONED') or creating_at is not null),
    constraint provider_batch_status_known check (status in ('waiting', 'running', 'ended', 'failed', 'unknown')),
    constraint provider_batch_stopped_known check (stopped in ('cancelled', 'expired')),
    constraint provider_batch_id_known check (state in ('INTENT', 'CREATING', 'ABANDONED')
        or (provider_id is not null and adopted is not null)),
    constraint provider_batch_refused_known check (refused in ('capacity', 'size', 'named', 'unnamed')),
    constraint provider_batch_refused_ended check (refused is null or state = 'ABANDONED'),
    constraint provider_batch_suspects_named check (suspects is null or refused = 'named'),
    -- no item is at the provider twice at a time
    constraint provider_batch_live_disjoint exclude using gist
        (int8range(batch_id, batch_id, '[]') with &&, ordinals with &&)
        where (state not in ('COLLECTED', 'ABANDONED'))
);
create index provider_batch_shard on nightmill.provider_batch (shard_id);
create index provider_batch_live on nightmill.provider_batch (job) where (state not in ('COLLECTED', 'ABANDONED'));
create index provider_batch_of_account on nightmill.provider_batch (account, model, provider_batch_id desc);
comment on column nightmill.provider_batch.account is 'Fingerprint of base URL, project and key: whose batch it is';
comment on column nightmill.provider_batch.input_ref is
    'What the requests were staged as at the provider; null where the create call carries them';
comment on column nightmill.provider_batch.status is 'raw_status in our words';
comment on column nightmill.provider_batch.stopped is
    'Why it may leave requests unanswered: somebody cancelled it, or its window ran out';
comment on column nightmill.provider_batch.requests_answered is
    'Those of requests_done that brought an answer. The provider''s counts: progress, never proof';
comment on column nightmill.provider_batch.result_refs is
    'The provider''s references to results by our name: output can hold answers, error holds none';
comment on column nightmill.provider_batch.window_ends_at is
    'When the provider ends it by itself: as it says, or by its window since the create call; null = never';
comment on column nightmill.provider_batch.results_until is 'Until when the provider keeps its results; null = not said';
comment on column nightmill.provider_batch.refused is
    'How the provider refused the whole file: no room, too large, bad lines by number, or no line named';
comment on column nightmill.provider_batch.suspects is
    'Groups of ordinals, each of which goes into a file of its own: what the named lines may be';
comment on column nightmill.provider_batch.provider_made_at is 'When it was made, by the provider''s own clock';
comment on column nightmill.provider_batch.taken_at is
    'When it was first seen past the provider''s validation: its queue had room for it';
comment on column nightmill.provider_batch.unknown_since is
    'Since when the provider shows a status that nobody knows; null while it is known';
comment on column nightmill.provider_batch.stop_asked_at is
    'When nightmill asked the provider to cancel it; null = whoever cancelled it is somebody else';
comment on column nightmill.provider_batch.over_at is
    'When the provider was first seen to say that it ended; what is missing then is waited for from here on';

create function nightmill.guard_provider_batch() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
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

create table nightmill.stray_batch (
    account text not null,
    provider_id text not null,
    provider_batch_id bigint not null references nightmill.provider_batch,
    batch_id bigint not null references nightmill.batch,
    found_at timestamptz not null default clock_timestamp(),
    raw_status text not null,
    booked_at timestamptz,
    answers bigint,
    prompt_tokens bigint,
    cache_read_tokens bigint,
    output_tokens bigint,
    primary key (account, provider_id),
    constraint stray_batch_booked check ((booked_at is null) or (answers is not null))
);
create index stray_batch_open on nightmill.stray_batch (found_at) where (booked_at is null);
create index stray_batch_of_batch on nightmill.stray_batch (batch_id);
comment on table nightmill.stray_batch is
    'Batches at a provider that carry a token of this ledger and were given up, or made twice: stopped, read and booked';
comment on column nightmill.stray_batch.answers is 'Lines that were executed, and so are paid for';

-- Outlives the worker that saw it, because other runs go by it.
create table nightmill.account_limit (
    account text not null,
    model text not null,
    refusals int not null default 0,
    refused_as text,
    refused_since timestamptz,
    refused_at timestamptz,
    next_at timestamptz,
    probe bigint,
    known_until bigint not null default 0,
    tokens bigint,
    tokens_refused bigint,
    file_bytes bigint,
    file_requests bigint,
    size_refused_at timestamptz,
    primary key (account, model),
    constraint account_limit_refused_known check (refused_as in ('queue', 'size', 'rate')),
    constraint account_limit_refused check ((refusals > 0) = (refused_since is not null))
);
comment on table nightmill.account_limit is
    'What an account was seen to take of a model, for all runs: while it refuses, one probe goes out at a time';
comment on column nightmill.account_limit.refusals is 'Creates refused in a row; 0 = the last one was taken';
comment on column nightmill.account_limit.next_at is 'The next probe goes out no sooner';
comment on column nightmill.account_limit.probe is 'The provider batch that goes out alone; null = none so far';
comment on column nightmill.account_limit.known_until is
    'Refusals of provider batches up to this one tell nothing new: they left before the first refusal was seen';
comment on column nightmill.account_limit.tokens is 'Prompt tokens that are known, or hoped, to fit into its queue';
comment on column nightmill.account_limit.tokens_refused is
    'Prompt tokens that did not fit: what was in the queue and the file that was refused, at the first of the refusals';
comment on column nightmill.account_limit.file_bytes is 'A file of twice as many bytes was refused as too large';
comment on column nightmill.account_limit.file_requests is 'A file of twice as many requests was refused as too large';


-- 8 Attempts, results and outcomes ------------------------------------------------------------------------------------

create table nightmill.attempt (
    batch_id bigint not null,
    ordinal bigint not null,
    provider_batch_id bigint not null,
    window_no int2 not null default 0,
    attempt_no int2 not null default 1,
    backoff_s real,
    class text,
    code text,
    sent_upstream boolean not null,
    model text,
    finish_reason text,
    uncached_tokens int,
    cache_read_tokens int,
    cache_write_tokens int,
    output_tokens int,
    reasoning_tokens int,
    prompt_tokens int generated always as
        (uncached_tokens + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0)) stored,
    odd_usage jsonb,
    made_at timestamptz not null default clock_timestamp(),
    constraint attempt_usage_adds_up check (
        (uncached_tokens is not null or coalesce(cache_read_tokens, cache_write_tokens) is null)
        and coalesce(reasoning_tokens, 0) <= coalesce(output_tokens, 0)
        and least(uncached_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, 0) = 0
        and (odd_usage is null or coalesce(uncached_tokens, output_tokens) is null)
    )
) partition by list (batch_id);
comment on column nightmill.attempt.attempt_no is 'Counts from 1 per item of a batch, capacity failures included';
comment on column nightmill.attempt.backoff_s is
    'Seconds from the end of the attempt before to the intent of this one; null for the first';
comment on column nightmill.attempt.class is 'null = accepted';
comment on column nightmill.attempt.sent_upstream is
    'False where no model worked on the request, so that it is not paid: expired, cancelled, or refused';
comment on column nightmill.attempt.window_no is
    'Which part of the item was asked for; 0 = all of it, an item that needs several requests numbers them';
comment on column nightmill.attempt.uncached_tokens is
    'Of the prompt, what neither came from the provider''s prompt cache nor was written to it';
comment on column nightmill.attempt.cache_read_tokens is 'Of the prompt, what came from the prompt cache';
comment on column nightmill.attempt.cache_write_tokens is 'Of the prompt, what was written to the prompt cache';
comment on column nightmill.attempt.prompt_tokens is 'All of the prompt';
comment on column nightmill.attempt.reasoning_tokens is 'Part of output_tokens: thought and not shown';
comment on column nightmill.attempt.odd_usage is
    'What the provider wrote where its usage cannot be; no count of it is taken then, and no price made of it';

-- Ids are drawn before the rows are written, so that outcomes and rows need no join by key. Revisions are numbered when
-- one takes another's place, so that first answers need not look for earlier ones.
create table nightmill.result (
    result_id bigint generated always as identity primary key,
    key bytea not null,
    revision int not null default 1,
    effective boolean not null default true,
    revoked_at timestamptz,
    job text not null,
    tenant text not null,
    source_id text not null,
    source_version text not null,
    content_hash bytea not null,
    answer jsonb not null,
    notes text[] not null default '{}',
    citations jsonb not null default '[]',
    validators_hash text not null,
    contract_id bigint not null, -- no foreign key: its check per row is an eighth of the cost of settling
    prompt_version text not null,
    model text not null,
    batch_id bigint not null,
    provider_batch_id bigint,
    uncached_tokens int,
    cache_read_tokens int,
    cache_write_tokens int,
    output_tokens int,
    reasoning_tokens int,
    prompt_tokens int generated always as
        (uncached_tokens + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0)) stored,
    answered_at timestamptz not null default clock_timestamp()
);
create unique index result_effective on nightmill.result (key) where (effective);
create unique index result_superseded on nightmill.result (key, revision) where (not effective);
comment on table nightmill.result is 'Accepted answers with provenance; one effective revision per idempotency key';
comment on column nightmill.result.revoked_at is 'Since when no run reuses it, because a rollback revoked it';

create table nightmill.outcome (
    batch_id bigint not null,
    ordinal bigint not null,
    kind text not null,
    result_id bigint,
    class text,
    code text,
    settled_at timestamptz not null default clock_timestamp(),
    constraint outcome_kind_known check (kind in ('accepted', 'reused', 'dead_lettered', 'in_review', 'excluded',
        'cancelled')),
    constraint outcome_result check ((kind in ('accepted', 'reused')) = (result_id is not null)),
    constraint outcome_class check (
        (kind in ('dead_lettered', 'in_review')) <= (class is not null and code is not null)
    )
) partition by list (batch_id);

-- Where each item of a batch stands: read only this for counts, gates and metrics. An item without a row is unsettled.
create view nightmill.item_bucket as
select batch_id, ordinal, kind as bucket, result_id, class, code, settled_at
from nightmill.outcome;

-- Outcomes, attempts and rows may be written only while their batch can still settle items, by nobody after a cancel:
-- the shared fence makes this exact, because cancel holds the exclusive one. Attempts of a CANCELLED batch may still
-- come in from its ended provider batches, because they were paid. A batch settles into its own part only. Rows that
-- stand in for gaps come after its answers, while it is judged. Asked once per statement, not per row.
create function nightmill.guard_settling() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
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
create trigger guard_settling after insert on nightmill.outcome
    referencing new table as written for each statement execute function nightmill.guard_settling();
create trigger guard_settling after insert on nightmill.attempt
    referencing new table as written for each statement execute function nightmill.guard_settling();

-- A dead letter that was copied, because its key gave up before or its batch was replayed without it, keeps the time
-- at which it gave up and the batch in which it did, so that its contract and its age stay true.
create table nightmill.dead_letter (
    dead_letter_id bigint generated always as identity primary key,
    batch_id bigint not null,
    ordinal bigint not null,
    key bytea not null,
    ended_as text not null default 'dead_lettered',
    class text not null,
    code text not null,
    message text not null,
    attempts int not null,
    provider_batch_id bigint,
    origin_batch_id bigint,
    created_at timestamptz not null default clock_timestamp(),
    unique (batch_id, ordinal),
    constraint dead_letter_ended_as_known check (ended_as in ('dead_lettered', 'in_review'))
);
create index dead_letter_key on nightmill.dead_letter (key);
comment on table nightmill.dead_letter is
    'Context of items that gave up or wait in review; the message may quote a provider';
comment on column nightmill.dead_letter.ended_as is
    'The kind of its outcome when it was settled; outlives the outcome, so that later batches can copy it';
comment on column nightmill.dead_letter.origin_batch_id is
    'The batch in which the item gave up, where that is another one; null = batch_id';
comment on column nightmill.dead_letter.created_at is 'When the item gave up; a copy keeps the time of its origin';

create table nightmill.quarantine (
    quarantine_id bigint generated always as identity primary key,
    batch_id bigint not null,
    shard_id bigint,
    what text not null,
    why text,
    held_generation int,
    held_lease int,
    rows bigint,
    refused_at timestamptz not null default clock_timestamp()
);
comment on table nightmill.quarantine is 'Writes of stale holders that were refused, and why';

-- Summed while it is settled: asking each reused answer again takes two seconds for a million.
create table nightmill.reuse_usage (
    batch_id bigint not null references nightmill.batch,
    answers bigint not null,
    prompt_tokens bigint not null,
    output_tokens bigint not null,
    cache_read_tokens bigint not null default 0,
    cache_write_tokens bigint not null default 0,
    reasoning_tokens bigint not null default 0,
    estimated bigint not null
);
create index reuse_usage_batch on nightmill.reuse_usage (batch_id);
comment on table nightmill.reuse_usage is
    'What reused answers had used when they were made, a row for each settling; replays and older batches have none';


-- 9 Prices and usage --------------------------------------------------------------------------------------------------

create table nightmill.price (
    model text not null,
    effective_from date not null,
    input_per_million numeric not null,
    cached_input_per_million numeric not null,
    output_per_million numeric not null,
    batch_discount numeric not null,
    cache_write_per_million numeric,
    primary key (model, effective_from)
);
comment on table nightmill.price is 'US dollars per million tokens at list price; batch_discount is the share taken off';
comment on column nightmill.price.cache_write_per_million is 'Of tokens written to a prompt cache; null = as input';

-- A number in a provider's usage report, or null for anything else that may stand there. A number that is stored as
-- text because no counter can show it (negative, not finite, too long) is -1.
create function nightmill.reported_number(usage jsonb, variadic path text[]) returns numeric
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case jsonb_typeof(usage #> path)
        when 'number' then (usage #>> path)::numeric
        when 'string' then case when usage #>> path ~ '^(-|nan|inf|[0-9]{19}|[0-9.]+e)' then -1 end
    end
$$;

-- The counts of a usage report; none of them where they cannot be, because they contradict one another or are no
-- counts of tokens. The rules of providers/dialects/usage.py, for the sums of a whole batch.
create function nightmill.reported_usage(usage jsonb, out prompt_tokens numeric, out cache_read_tokens numeric,
    out cache_write_tokens numeric, out output_tokens numeric, out reasoning_tokens numeric, out is_odd boolean)
language sql immutable set search_path = pg_catalog, pg_temp as $$
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
comment on function nightmill.reported_usage(jsonb) is 'Counts of a usage report, or is_odd where they cannot be';

-- Cost at the price in force on the day the batch was made, with the batch discount; null where usage or price is
-- unknown. Tokens from and for the cache are part of the prompt tokens, reasoning is part of the completion tokens:
-- each is counted once.
create view nightmill.attempt_cost as
select attempt.*, provider_batch.provider_id,
    (price.input_per_million * attempt.uncached_tokens
        + price.cached_input_per_million * coalesce(attempt.cache_read_tokens, 0)
        + coalesce(price.cache_write_per_million, price.input_per_million) * coalesce(attempt.cache_write_tokens, 0)
        + price.output_per_million * coalesce(attempt.output_tokens, 0))
        / 1000000 * (1 - price.batch_discount) as cost
from nightmill.attempt
join nightmill.provider_batch using (batch_id, provider_batch_id)
join nightmill.batch using (batch_id)
left join lateral (
    select price.*
    from nightmill.price
    where price.model = provider_batch.model
        and price.effective_from <= (batch.created_at at time zone 'UTC')::date
    order by price.effective_from desc
    limit 1
) as price on true;
comment on view nightmill.attempt_cost is 'Attempts with the provider''s batch id and their cost in US dollars';

-- attempts + unattributed = reported, for each count. A report of no tokens at all is one where no line has an answer,
-- and none where some do. A part of a count that a report leaves out, or says is 0, is the sum of the attempts, as far
-- as the report has room.
create view nightmill.provider_batch_usage as
select provider_batch.batch_id, provider_batch.provider_batch_id, reported.prompt_tokens is not null as is_reported,
    reported.prompt_tokens as reported_prompt_tokens, reported.cache_read_tokens as reported_cache_read_tokens,
    reported.output_tokens as reported_output_tokens,
    reported.prompt_tokens - attributed.prompt_tokens as unattributed_prompt_tokens,
    reported.cache_read_tokens - attributed.cache_read_tokens as unattributed_cache_read_tokens,
    reported.output_tokens - attributed.output_tokens as unattributed_output_tokens,
    reported.cache_write_tokens as reported_cache_write_tokens,
    reported.reasoning_tokens as reported_reasoning_tokens,
    reported.cache_write_tokens - attributed.cache_write_tokens as unattributed_cache_write_tokens,
    reported.reasoning_tokens - attributed.reasoning_tokens as unattributed_reasoning_tokens,
    coalesce(told.is_odd, false) as is_odd
from nightmill.provider_batch
left join (
    select batch_id, provider_batch_id, coalesce(sum(prompt_tokens), 0) as prompt_tokens,
        coalesce(sum(cache_read_tokens), 0) as cache_read_tokens, coalesce(sum(cache_write_tokens), 0) as cache_write_tokens,
        coalesce(sum(output_tokens), 0) as output_tokens,
        coalesce(sum(reasoning_tokens), 0) as reasoning_tokens,
        bool_or(class is null or class = 'output' or prompt_tokens > 0) as answered
    from nightmill.attempt
    group by batch_id, provider_batch_id
) as counted using (batch_id, provider_batch_id)
cross join lateral (
    select coalesce(counted.prompt_tokens, 0) as prompt_tokens, coalesce(counted.cache_read_tokens, 0) as cache_read_tokens,
        coalesce(counted.cache_write_tokens, 0) as cache_write_tokens,
        coalesce(counted.output_tokens, 0) as output_tokens,
        coalesce(counted.reasoning_tokens, 0) as reasoning_tokens, coalesce(counted.answered, false) as answered
) as attributed
cross join lateral nightmill.reported_usage(provider_batch.usage) as told
cross join lateral (
    select case when told.prompt_tokens > 0 or not attributed.answered then told.prompt_tokens end as prompt_tokens,
        coalesce(told.output_tokens, attributed.output_tokens) as output_tokens
) as sums
cross join lateral (
    select sums.prompt_tokens, sums.output_tokens,
        coalesce(nullif(told.cache_read_tokens, 0), least(attributed.cache_read_tokens,
            sums.prompt_tokens - coalesce(told.cache_write_tokens, 0))) as cache_read_tokens,
        coalesce(nullif(told.reasoning_tokens, 0), least(attributed.reasoning_tokens, sums.output_tokens))
            as reasoning_tokens
) as most
cross join lateral (
    select most.*, coalesce(nullif(told.cache_write_tokens, 0), least(attributed.cache_write_tokens,
        most.prompt_tokens - most.cache_read_tokens)) as cache_write_tokens
) as reported
where provider_batch.state in ('ENDED', 'COLLECTED');
comment on view nightmill.provider_batch_usage is
    'What the provider reports for each batch, and the part of it that no attempt explains: lost answers, for one';


-- 10 Views, rows and parts --------------------------------------------------------------------------------------------
-- What a view shows is a publication: a list of parts (section 11). A part is the rows of one batch, and bears its
-- number, or rows of several that were merged: those count down from -1. `apply` makes a table rows_<view> for each
-- view, partitioned by part. item, attempt and outcome are partitioned by batch.
--
-- A partition is made beside its parent and then attached: ATTACH waits for no reader and blocks none;
-- CREATE ... PARTITION OF would do both. It is made, indexed, attached and dropped under a lock that is taken before
-- its standing is read, so that a retry cannot drop what the first try attaches meanwhile.

create table nightmill.view_definition (
    view_name text primary key,
    job text not null,
    mode text not null default 'replace',
    columns jsonb not null,
    nullable text[] not null default '{}',
    applied_at timestamptz not null default clock_timestamp(),
    constraint mode_known check (mode in ('replace', 'by_interval', 'by_key'))
);
comment on column nightmill.view_definition.nullable is
    'Columns that output.py may leave out, whose rows are null then: added after the view was made, or null by type';

create sequence nightmill.merged_part increment -1 start -1;

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

-- rows_12 is no view's table, because a view's name begins with a letter. Rows of batches from before keep their name.
create function nightmill.partition_name(parent text, batch_id bigint) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
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

create function nightmill.require_partitioned(parent text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    if not exists (
        select from pg_catalog.pg_class
        where relnamespace = 'nightmill'::regnamespace and relkind = 'p' and relname = parent
    ) then
        raise exception '% has no partitions', parent using errcode = 'NM005';
    end if;
end $$;

-- Where a partition's table stands: absent, unattached or attached (also while it is being detached). An unattached one
-- is held until the transaction ends; an attached one is left alone, because readers use it. The catalogs are asked as
-- they are now (pg_partition_root, to_regclass), whatever snapshot the caller's transaction has.
create function nightmill.hold_partition(child text) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
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

-- Makes the table for a batch or a part, not attached and without indexes, writable by the writer: the owner's default
-- privileges do not reach partitions that are filled by a run. A left-over of a killed builder is dropped first; an
-- attached one is never touched.
create function nightmill.create_partition(parent text, batch_id bigint) returns void
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

-- Indexes an unattached partition, filled or not. Indexed already is fine. Rows are indexed when all of them are there,
-- which costs less than an entry put in with each row; until then their outcomes refuse what would come twice. A
-- source id stands once in a batch, and once in what a view by key shows; in merged intervals once for each of them.
-- Statistics are gathered only of the columns that queries join by: a sample is sorted for each.
create function nightmill.index_partition(parent text, batch_id bigint) returns void
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
            case parent when 'attempt' then '(batch_id, ordinal, provider_batch_id, window_no)'
                else '(batch_id, ordinal)' end);
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

-- An attached partition needs no check of its own batch id beside its bound: readers pay for each check of each
-- attached batch when they plan, writers when they write.
create function nightmill.attach_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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

create function nightmill.drop_detached_partition(parent text, batch_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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

-- A gate that is cleared may judge by other rules: what stood in for gaps goes, and is written anew.
create function nightmill.drop_gap_rows(of_batch bigint) returns void language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
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
end $$;


-- 11 Publication ------------------------------------------------------------------------------------------------------

-- A part is retired once the flip that hid it is older than every snapshot.
create table nightmill.publication (
    publish_seq bigint generated always as identity primary key,
    view_name text not null,
    batch_id bigint references nightmill.batch,
    kind text not null,
    published_at timestamptz not null default clock_timestamp(),
    published_by text not null,
    approved_by text,
    note text,
    counts jsonb not null,
    gaps bigint not null,
    flipped_by xid8 not null default pg_current_xact_id(),
    constraint publication_kind_known check (kind in ('publish', 'rollback', 'merge', 'retention'))
);
create index publication_view on nightmill.publication (view_name, publish_seq desc);
comment on column nightmill.publication.flipped_by is
    'The transaction of the flip: readers whose snapshot is older see what was shown before';

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
create index publication_part_by_part on nightmill.publication_part (part_id, publish_seq);
comment on table nightmill.publication_part is
    'What each publication shows: the parts, and the batches whose rows lie in each; a merged part has several';

-- A publication can only list what went through publish, only of its own view, and only parts that exist.
create function nightmill.guard_publication_part() returns trigger language plpgsql security definer
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
create trigger guard_publication_part after insert on nightmill.publication_part
    referencing new table as listed for each statement execute function nightmill.guard_publication_part();

create table nightmill.published (
    view_name text primary key,
    mode text not null default 'replace',
    publish_seq bigint not null references nightmill.publication,
    batch_id bigint not null references nightmill.batch,
    part_id bigint,
    published_at timestamptz not null,
    gaps bigint not null,
    constraint one_part_or_intervals check (case mode
        when 'by_interval' then part_id is null
        when 'replace' then part_id is not null
        when 'by_key' then part_id is not null
        else false end)
);
comment on table nightmill.published is 'Which publication each view shows, since when, with how many gaps';

-- A view can only show a batch that went through publish, and only a batch, publication and part of its own.
create function nightmill.guard_published() returns trigger language plpgsql security definer
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
create trigger guard_published before insert or update on nightmill.published
    for each row execute function nightmill.guard_published();

create view results.published_intervals as
select published.view_name, listed.interval_start, listed.interval_end, listed.batch_id, listed.publish_seq,
    listed.shown_since, listed.counts, listed.gaps, batch.gap_facts,
    coalesce((batch.gap_facts #>> '{readers,searchable}')::boolean, true) as searchable
from nightmill.published
join nightmill.publication_part as listed using (publish_seq)
join nightmill.batch on batch.batch_id = listed.batch_id;
comment on view results.published_intervals is
    'What each view shows now: a row for each data interval, or for its one batch, with its gaps';

create view results.published_views as
select published.view_name, published.batch_id, published.publish_seq, published.published_at as shown_since,
    publication.counts, published.gaps,
    case when published.mode <> 'by_interval' then batch.gap_facts end as gap_facts,
    (
        select coalesce(bool_and(part.searchable), true)
        from results.published_intervals as part
        where part.view_name = published.view_name
    ) as searchable
from nightmill.published
join nightmill.publication using (publish_seq)
join nightmill.batch on batch.batch_id = published.batch_id;
comment on view results.published_views is
    'What each view shows now: since when, with which counts and gaps; by_interval: the gaps are in published_intervals';


-- 12 Gates ------------------------------------------------------------------------------------------------------------

create table nightmill.gate_verdict (
    verdict_id bigint generated always as identity primary key,
    batch_id bigint not null references nightmill.batch,
    generation int not null,
    gate text not null,
    verdict text not null,
    passed boolean generated always as
        (case verdict when 'passed' then true when 'not configured' then null else false end) stored,
    decided_by text,
    decided_at timestamptz not null default clock_timestamp(),
    details jsonb not null,
    config_hash text not null,
    constraint gate_known check (gate in ('completion', 'check_staging', 'compare', 'approve')),
    constraint gate_verdict_known
        check (verdict in ('passed', 'refused', 'waiting', 'rejected', 'not configured'))
);
create index gate_verdict_batch on nightmill.gate_verdict (batch_id, gate, verdict_id desc);
comment on column nightmill.gate_verdict.verdict is
    'passed, refused, waiting for an answer, rejected for good; or that the job does not have this gate';
comment on column nightmill.gate_verdict.passed is 'null = the job does not configure this gate, which opens it';
comment on column nightmill.gate_verdict.decided_by is
    'The person who decided, or what decided for them; null where a rule did';


-- 13 Holds ------------------------------------------------------------------------------------------------------------
-- What a rollback takes back stays back until a person lifts its hold.

create table nightmill.hold (
    hold_id bigint generated always as identity primary key,
    view_name text not null,
    interval_start timestamptz,
    interval_end timestamptz,
    publish_seq bigint not null references nightmill.publication,
    taken_back bigint[] not null,
    reason text,
    held_at timestamptz not null default clock_timestamp(),
    held_by text not null,
    request text unique,
    revoke boolean not null default false,
    revoked bigint,
    released_at timestamptz,
    released_by text,
    constraint view_or_interval check ((interval_start is null) = (interval_end is null)),
    constraint released_by_somebody check ((released_at is null) = (released_by is null)),
    constraint revoked_before_released check (released_at is null or not revoke or revoked is not null)
);
create index hold_open on nightmill.hold (view_name) where released_at is null;
create index hold_publication on nightmill.hold (view_name, publish_seq);
comment on table nightmill.hold is
    'What a rollback took back, and until when runs must not publish: the whole view, or the interval';
comment on column nightmill.hold.publish_seq is 'The publication of the rollback';
comment on column nightmill.hold.request is 'The run that asked for it: its retry does nothing twice';
comment on column nightmill.hold.revoke is 'Whether its answers are to be asked for again; revoked: how many they were';

create function nightmill.guard_hold() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
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
create trigger guard_hold before insert or update on nightmill.hold
    for each row execute function nightmill.guard_hold();


-- 14 What reviewers may compare ---------------------------------------------------------------------------------------

-- The SQL for an object of the columns in which two rows differ. Values are cut after 400 characters.
create function nightmill.cut_values(shown text, beside text, fields text[]) returns text
language sql immutable
set search_path = pg_catalog, pg_temp as $$
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
set search_path = pg_catalog, pg_temp as $$
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
set search_path = pg_catalog, pg_temp as $$
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

-- What a batch has otherwise than readers saw it, row by row, for people who may see answers: whoever has the role
-- nightmill_reviewer, and nobody else. Values are cut. Readers saw `old_batch`; in by_interval also the other intervals
-- of the publication that the batch covers, and in by_key all that it showed.
create function nightmill.changed_rows(new_batch bigint, old_batch bigint, publication bigint, fields text[],
    tenants_first text[], most integer)
returns table (source_id text, tenant text, old jsonb, new jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp as $$
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


-- 15 Maintenance ------------------------------------------------------------------------------------------------------

create table nightmill.maintenance_action (
    action_id bigint generated always as identity primary key,
    sweep text not null,
    batch_id bigint,
    what text not null,
    alert boolean not null,
    done_at timestamptz not null default clock_timestamp()
);
comment on table nightmill.maintenance_action is 'What maintenance did; alert = a person should look';

create table nightmill.maintenance_sweep (
    sweep text primary key,
    ran_at timestamptz not null default clock_timestamp()
);
comment on table nightmill.maintenance_sweep is 'When each sweep of maintenance last came to its end';


-- 16 Roles and grants -------------------------------------------------------------------------------------------------
-- nightmill_owner owns everything and is nobody's daily login. `apply` grants what belongs to a view of its own.

grant usage on schema nightmill, results to nightmill_writer, nightmill_reader, nightmill_view_owner;
grant usage on schema nightmill to nightmill_console, nightmill_reviewer;

-- The writer, which is what tasks and commands log in as: it fills the ledger and moves states, and owns nothing.
grant select on all tables in schema nightmill to nightmill_writer;
grant insert on nightmill.account_limit, nightmill.attempt, nightmill.batch, nightmill.breaker, nightmill.contract,
    nightmill.dead_letter, nightmill.deleted_key, nightmill.deployment, nightmill.gate_verdict, nightmill.hold,
    nightmill.maintenance_action, nightmill.maintenance_sweep, nightmill.outcome, nightmill.part_build,
    nightmill.payload_segment, nightmill.provider_batch, nightmill.publication, nightmill.publication_part,
    nightmill.published, nightmill.quarantine, nightmill.result, nightmill.reuse_usage, nightmill.shard,
    nightmill.stray_batch to nightmill_writer;
grant update on nightmill.account_limit, nightmill.breaker, nightmill.maintenance_sweep, nightmill.stray_batch
    to nightmill_writer;
grant delete on nightmill.deleted_key, nightmill.part_build, nightmill.shard to nightmill_writer;
grant update (max_tries, state, state_reason, blocked_from, blocked_by, generation, params, note, source_query,
    source_parameters, source_snapshot, item_count, prompt_tokens, content_hash, estimate, counts, gap_facts, frozen_at,
    ended_at) on nightmill.batch to nightmill_writer;
grant update (state, state_reason, lease, unsettled, wake_at, hold_until, failed_at, settled_at)
    on nightmill.shard to nightmill_writer;
grant update (state, state_reason, input_ref, provider_id, adopted, raw_status, status, stopped, requests_done,
    requests_answered, requests_total, result_refs, usage, refused, suspects, creating_at, submitted_at,
    provider_made_at, taken_at, unknown_since, stop_asked_at, over_at, ended_at, collected_at, window_ends_at,
    results_until) on nightmill.provider_batch to nightmill_writer;
grant update (revision, effective, revoked_at, citations, validators_hash) on nightmill.result to nightmill_writer;
grant update (mode, publish_seq, batch_id, part_id, published_at, gaps) on nightmill.published to nightmill_writer;
grant update (revoked, released_at, released_by) on nightmill.hold to nightmill_writer;
grant usage on sequence nightmill.result_result_id_seq, nightmill.merged_part to nightmill_writer;
grant execute on function nightmill.fence_shared(bigint), nightmill.fence_exclusive(bigint),
    nightmill.create_partition(text, bigint), nightmill.index_partition(text, bigint),
    nightmill.attach_partition(text, bigint), nightmill.drop_built_part(text, bigint), nightmill.drop_gap_rows(bigint)
    to nightmill_writer;

-- Readers see what was published and what is held. Views belong to a role that sees published rows only
-- (queries/view/protect.sql).
grant select on nightmill.published, nightmill.publication, nightmill.publication_part, nightmill.hold
    to nightmill_reader;
grant select on nightmill.published, nightmill.publication_part to nightmill_view_owner;
grant select on results.published_views, results.published_intervals to nightmill_reader, nightmill_writer;

-- The console reads where things stand and what they used: no document, prompt, answer or provider's message.
grant select on nightmill.account_limit, nightmill.attempt, nightmill.attempt_cost, nightmill.batch, nightmill.breaker,
    nightmill.deployment, nightmill.gate_verdict, nightmill.hold, nightmill.item_bucket, nightmill.maintenance_action,
    nightmill.maintenance_sweep, nightmill.price, nightmill.provider_batch, nightmill.provider_batch_usage,
    nightmill.publication, nightmill.publication_part, nightmill.published, nightmill.reuse_usage, nightmill.shard,
    nightmill.stray_batch, nightmill.transition, nightmill.view_definition to nightmill_console;
grant select (batch_id, ordinal, tokens) on nightmill.item to nightmill_console;
grant select (batch_id, ordinal, kind, result_id) on nightmill.outcome to nightmill_console;
grant select (result_id, prompt_tokens, uncached_tokens, cache_read_tokens, cache_write_tokens, output_tokens,
    reasoning_tokens)
    on nightmill.result to nightmill_console;

-- The view provider_batch_usage calls the first two with the rights of whoever reads the view.
grant execute on function nightmill.reported_number(jsonb, text[]), nightmill.reported_usage(jsonb),
    nightmill.partition_name(text, bigint) to nightmill_writer, nightmill_console;

-- Reviewers may see answers.
grant execute on function nightmill.changed_rows(bigint, bigint, bigint, text[], text[], integer)
    to nightmill_reviewer;
