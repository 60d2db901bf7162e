-- What a wait goes by has to outlive the worker that saw it: limits of an account, what a batch may not send just now,
-- and when the provider first said something about a file.

alter table nightmill.provider_batch
    add column taken_at timestamptz,
    add column over_at timestamptz,
    add column unknown_since timestamptz,
    add column stop_asked_at timestamptz,
    add column provider_made_at timestamptz,
    drop constraint provider_batch_refused_known,
    add constraint provider_batch_refused_known check (refused in ('capacity', 'size', 'named', 'unnamed'));
comment on column nightmill.provider_batch.refused is
    'How the provider refused the whole file: no room, too large, bad lines by number, or no line named';
comment on column nightmill.provider_batch.taken_at is
    'When it was first seen past the provider''s validation: its queue had room for it';
comment on column nightmill.provider_batch.over_at is
    'When the provider was first seen to say that it ended; what is missing then is waited for from here on';
comment on column nightmill.provider_batch.unknown_since is
    'Since when the provider shows a status that nobody knows; null while it is known';
comment on column nightmill.provider_batch.stop_asked_at is
    'When nightmill asked the provider to cancel it; null = whoever cancelled it is somebody else';
comment on column nightmill.provider_batch.provider_made_at is 'When it was made, by the provider''s own clock';
grant update (taken_at, over_at, unknown_since, stop_asked_at, provider_made_at)
    on nightmill.provider_batch to nightmill_writer;
create index provider_batch_of_account on nightmill.provider_batch (account, model, provider_batch_id desc);

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
grant select, insert, update on nightmill.account_limit to nightmill_writer;
grant select on nightmill.account_limit to nightmill_console;

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
grant select, insert, update on nightmill.breaker to nightmill_writer;
grant select on nightmill.breaker to nightmill_console;

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
    cached_tokens bigint,
    completion_tokens bigint,
    primary key (account, provider_id),
    constraint stray_batch_booked check ((booked_at is null) or (answers is not null))
);
create index stray_batch_open on nightmill.stray_batch (found_at) where (booked_at is null);
create index stray_batch_of_batch on nightmill.stray_batch (batch_id);
comment on table nightmill.stray_batch is
    'Batches at a provider that carry a token of this ledger and were given up, or made twice: stopped, read and booked';
comment on column nightmill.stray_batch.answers is 'Lines that were executed, and so are paid for';
grant select, insert, update on nightmill.stray_batch to nightmill_writer;
grant select on nightmill.stray_batch to nightmill_console;
