-- A preview: a batch that passed its gates and that no reader sees. STAGED is not an end: it is published later, or
-- cancelled by a person or by retention. And a run that is cleared after its batch ended unpublished gets a new one.

alter table nightmill.batch
    drop constraint batch_state_known,
    add constraint batch_state_known check (state in ('CREATED', 'PLANNING', 'QUEUED', 'RUNNING', 'VALIDATING',
        'STAGED', 'PUBLISHED', 'ESTIMATED', 'REJECTED', 'PARTIAL_FAILED', 'CANCELLED', 'BLOCKED'));

insert into nightmill.state_edge values
    ('batch', 'VALIDATING', 'STAGED'),
    ('batch', 'STAGED', 'VALIDATING'),
    ('batch', 'STAGED', 'CANCELLED');

-- Airflow raises max_tries when a person clears a task, and leaves it for a retry: 5 is what a task of a job begins with.
alter table nightmill.batch add column max_tries int not null default 5;
comment on column nightmill.batch.max_tries is
    'Airflow''s max_tries of freeze_snapshot when it last saw this batch; a greater one says that it was cleared since';
grant update (max_tries) on nightmill.batch to nightmill_writer;
