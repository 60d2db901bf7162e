-- Everything the simulator knows, beside the files' bytes. Times are seconds since the epoch.
create table if not exists file (
    seq integer primary key autoincrement,
    id text not null unique,
    purpose text not null,
    filename text not null,
    bytes integer not null,
    created_at real not null,
    expires_at real,
    deleted integer not null default 0
);

create table if not exists batch (
    seq integer primary key autoincrement,
    id text not null unique,
    status text not null,
    endpoint text not null,
    input_file_id text not null,
    metadata text,
    created_at real not null,
    expires_at real not null,
    output_expires_s integer,
    in_progress_at real,
    finalizing_at real,
    completed_at real,
    failed_at real,
    expired_at real,
    cancelling_at real,
    cancelled_at real,
    model text,
    validated integer not null default 0,
    enqueued_tokens integer not null default 0,
    total integer not null default 0,
    done integer not null default 0,       -- lines executed, in execution order
    succeeded integer not null default 0,
    failed integer not null default 0,
    input_tokens integer not null default 0,
    output_tokens integer not null default 0,
    output_bytes integer not null default 0, -- how much of the result files is committed
    error_bytes integer not null default 0,
    output_file_id text,
    error_file_id text,
    problems text
);
create index if not exists batch_open on batch (status)
    where status in ('validating', 'in_progress', 'finalizing', 'cancelling');

-- The books: one row per request that was executed. batch_id is null for a realtime call.
create table if not exists execution (
    seq integer primary key autoincrement,
    batch_id text,
    custom_id text not null,
    endpoint text not null,
    model text not null,
    body_sha256 text not null,
    status integer not null,
    prompt_tokens integer not null,
    completion_tokens integer not null,
    at real not null
);

create table if not exists call (route text primary key, n integer not null);
-- How often a fault of the plan struck a subject: a request, a route, a file.
create table if not exists fault_hit (
    fault text not null,
    subject text not null,
    times integer not null,
    primary key (fault, subject)
) without rowid;
-- Batches that a fault lets expire once so many lines are executed.
create table if not exists batch_stop (batch_id text primary key, stop_at integer not null) without rowid;
create table if not exists fault_log (
    seq integer primary key autoincrement,
    at real not null,
    fault text not null,
    detail text not null
);
create table if not exists setting (name text primary key, value text not null);
