-- The ledger: contracts, batches, items, shards, provider batches, attempts, results, outcomes.

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

create table nightmill.batch (
    batch_id bigint generated always as identity primary key,
    job text not null,
    view_name text not null,
    dag_id text not null,
    run_id text not null,
    incarnation int not null,
    state text not null default 'CREATED',
    state_reason text not null default 'created',
    blocked_from text,
    blocked_by text,
    generation int not null default 1,
    contract_id bigint not null references nightmill.contract,
    parent_batch_id bigint unique references nightmill.batch,
    payload_batch_id bigint references nightmill.batch,
    dry_run boolean not null default false,
    params jsonb not null default '{}',
    note text,
    requested_by text,
    data_interval_start timestamptz,
    data_interval_end timestamptz,
    source_query text,
    source_parameters jsonb,
    source_snapshot text,
    item_count bigint,
    prompt_tokens bigint,
    content_hash bytea,
    estimate jsonb,
    counts jsonb,
    created_at timestamptz not null default clock_timestamp(),
    frozen_at timestamptz,
    ended_at timestamptz,
    unique (dag_id, run_id, incarnation),
    constraint batch_state_known check (state in ('CREATED', 'PLANNING', 'QUEUED', 'RUNNING', 'VALIDATING',
        'PUBLISHED', 'ESTIMATED', 'REJECTED', 'PARTIAL_FAILED', 'CANCELLED', 'BLOCKED')),
    constraint batch_ended check ((state in ('PUBLISHED', 'ESTIMATED', 'REJECTED', 'PARTIAL_FAILED', 'CANCELLED'))
        = (ended_at is not null)),
    constraint batch_blocked check ((state = 'BLOCKED') = (blocked_from is not null)),
    constraint batch_frozen check (state in ('CREATED', 'CANCELLED') or (frozen_at is not null
        and item_count is not null and content_hash is not null))
);
create index batch_job on nightmill.batch (job, batch_id desc);

create table nightmill.payload_segment (
    batch_id bigint not null references nightmill.batch,
    segment int not null,
    first_ordinal bigint not null,
    last_ordinal bigint not null,
    object_path text not null,
    object_bytes bigint not null,
    raw_sha256 bytea not null,
    primary key (batch_id, segment),
    check (first_ordinal <= last_ordinal)
);
comment on table nightmill.payload_segment is 'Payload objects in item order: zstd JSON lines, one line per ordinal';

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
    skip_reason text
) partition by list (batch_id);
comment on column nightmill.item.tokens is 'Prompt tokens of the rendered request';
comment on column nightmill.item.skip_reason is 'Why this item is never sent: empty_document, over_context; else null';

create table nightmill.shard (
    shard_id bigint generated always as identity primary key,
    batch_id bigint not null references nightmill.batch,
    first_ordinal bigint not null,
    last_ordinal bigint not null,
    items bigint not null,
    prompt_tokens bigint not null,
    state text not null default 'QUEUED',
    state_reason text not null default 'planned',
    lease int not null default 0,
    wake_at timestamptz,
    settled_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    constraint shard_state_known check (state in ('QUEUED', 'RUNNING', 'RETRY_WAIT', 'SETTLED', 'CANCELLED')),
    constraint shard_settled check ((state = 'SETTLED') = (settled_at is not null)),
    constraint shard_range check (first_ordinal <= last_ordinal),
    constraint shard_disjoint exclude using gist
        (int8range(batch_id, batch_id, '[]') with &&, int8range(first_ordinal, last_ordinal, '[]') with &&)
);
comment on column nightmill.shard.items is 'Items that were unsettled when the shard was planned';

create table nightmill.provider_batch (
    provider_batch_id bigint generated always as identity primary key,
    batch_id bigint not null references nightmill.batch,
    shard_id bigint not null references nightmill.shard,
    job text not null,
    state text not null default 'INTENT',
    state_reason text not null default 'intent',
    token text not null unique,
    account text not null,
    model text not null,
    ordinals int8multirange not null,
    requests bigint not null,
    prompt_tokens bigint not null,
    file_bytes bigint not null,
    input_file_id text,
    provider_id text,
    adopted boolean,
    raw_status text,
    output_file_id text,
    error_file_id text,
    counts jsonb,
    usage jsonb,
    problems jsonb,
    intent_at timestamptz not null default clock_timestamp(),
    uploaded_at timestamptz,
    submitted_at timestamptz,
    ended_at timestamptz,
    collected_at timestamptz,
    constraint provider_batch_state_known check (state in ('INTENT', 'UPLOADED', 'SUBMITTED', 'ENDED', 'COLLECTED',
        'ABANDONED')),
    constraint provider_batch_file_before_create check (state in ('INTENT', 'ABANDONED')
        or input_file_id is not null),
    constraint provider_batch_id_known check (state in ('INTENT', 'UPLOADED', 'ABANDONED')
        or (provider_id is not null and adopted is not null)),
    constraint provider_batch_live_disjoint exclude using gist
        (int8range(batch_id, batch_id, '[]') with &&, ordinals with &&)
        where (state not in ('COLLECTED', 'ABANDONED')),
    unique (account, provider_id)
);
create index provider_batch_shard on nightmill.provider_batch (shard_id);
create index provider_batch_live on nightmill.provider_batch (job) where (state not in ('COLLECTED', 'ABANDONED'));
comment on column nightmill.provider_batch.account is 'Fingerprint of base URL, project and key: whose batch it is';

create table nightmill.attempt (
    batch_id bigint not null,
    ordinal bigint not null,
    provider_batch_id bigint not null,
    class text,
    code text,
    sent_upstream boolean not null,
    prompt_tokens int,
    completion_tokens int,
    cached_tokens int,
    model text,
    finish_reason text,
    made_at timestamptz not null default clock_timestamp()
) partition by list (batch_id);
comment on column nightmill.attempt.class is 'null = accepted';

create table nightmill.result (
    result_id bigint generated always as identity primary key,
    key bytea not null,
    revision int not null default 1,
    effective boolean not null default true,
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
    prompt_tokens int,
    completion_tokens int,
    answered_at timestamptz not null default clock_timestamp()
);
create unique index result_effective on nightmill.result (key) where (effective);
create unique index result_superseded on nightmill.result (key, revision) where (not effective);
comment on table nightmill.result is 'Accepted answers with provenance; one effective revision per idempotency key';

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
    constraint outcome_class check ((kind = 'dead_lettered') <= (class is not null and code is not null))
) partition by list (batch_id);

create table nightmill.dead_letter (
    dead_letter_id bigint generated always as identity primary key,
    batch_id bigint not null,
    ordinal bigint not null,
    key bytea not null,
    class text not null,
    code text not null,
    message text not null,
    attempts int not null,
    provider_batch_id bigint,
    created_at timestamptz not null default clock_timestamp(),
    unique (batch_id, ordinal)
);
create index dead_letter_key on nightmill.dead_letter (key);
comment on table nightmill.dead_letter is 'Context of items that gave up; the message may quote a provider';

create table nightmill.quarantine (
    quarantine_id bigint generated always as identity primary key,
    batch_id bigint not null,
    shard_id bigint,
    what text not null,
    held_generation int,
    held_lease int,
    rows bigint,
    refused_at timestamptz not null default clock_timestamp()
);
comment on table nightmill.quarantine is 'Writes of stale holders that were refused, and why';

create table nightmill.price (
    model text not null,
    effective_from date not null,
    input_per_million numeric not null,
    cached_input_per_million numeric not null,
    output_per_million numeric not null,
    batch_discount numeric not null,
    primary key (model, effective_from)
);
comment on table nightmill.price is 'US dollars per million tokens at list price; batch_discount is the share taken off';
