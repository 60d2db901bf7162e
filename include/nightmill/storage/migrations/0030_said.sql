-- What people are told: gates that nobody configured, shards whose task failed, columns that may be missing.

alter table nightmill.gate_verdict alter column passed drop not null;
comment on column nightmill.gate_verdict.passed is 'null = the job does not configure this gate, which opens it';

alter table nightmill.shard
    add column unsettled bigint,
    add column failed_at timestamptz;
comment on column nightmill.shard.unsettled is 'Items without an outcome at its last wake-up; null before the first';
comment on column nightmill.shard.failed_at is
    'When its last wake-up ended with the fault that state_reason tells; null once another one has begun';
grant update (unsettled, failed_at) on nightmill.shard to nightmill_writer;

alter table nightmill.view_definition add column nullable text[] not null default '{}';
comment on column nightmill.view_definition.nullable is
    'Columns that output.py may leave out, whose rows are null then: added after the view was made, or null by type';
