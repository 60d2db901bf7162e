-- States, their legal edges, and the history of every transition.

create table nightmill.state_edge (
    entity text not null,
    from_state text not null,
    to_state text not null,
    primary key (entity, from_state, to_state)
);
comment on table nightmill.state_edge is 'Legal state edges; equal to domain/states.py (tested)';

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
    ('batch', 'VALIDATING', 'PUBLISHED'),
    ('batch', 'VALIDATING', 'REJECTED'),
    ('batch', 'VALIDATING', 'PARTIAL_FAILED'),
    ('batch', 'VALIDATING', 'BLOCKED'),
    ('batch', 'VALIDATING', 'CANCELLED'),
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
    ('provider_batch', 'INTENT', 'UPLOADED'),
    ('provider_batch', 'INTENT', 'ABANDONED'),
    ('provider_batch', 'UPLOADED', 'SUBMITTED'),
    ('provider_batch', 'UPLOADED', 'ABANDONED'),
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

-- Both forms of the fence use one key space: class 7106 ("nm"), the batch id.
create function nightmill.fence_shared(batch_id bigint) returns void
language sql as $$ select pg_advisory_xact_lock_shared(7106, batch_id::int) $$;
comment on function nightmill.fence_shared(bigint) is
    'Taken first by every transaction that writes for a batch; read generation and lease in the NEXT statement';

create function nightmill.fence_exclusive(batch_id bigint) returns void
language sql as $$ select pg_advisory_xact_lock(7106, batch_id::int) $$;
comment on function nightmill.fence_exclusive(bigint) is
    'Taken first by batch edges, cancel and takeover; never after the shared form';
