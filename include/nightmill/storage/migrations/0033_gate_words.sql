-- What a gate said is a word, with who decided; and a preview may be published later.

alter table nightmill.gate_verdict add column verdict text;
update nightmill.gate_verdict
set verdict = case when passed then 'passed' when passed is null then 'not configured' else 'refused' end;
alter table nightmill.gate_verdict
    alter column verdict set not null,
    add constraint gate_verdict_known
        check (verdict in ('passed', 'refused', 'waiting', 'rejected', 'not configured')),
    add column decided_by text,
    drop column passed;
alter table nightmill.gate_verdict add column passed boolean generated always as
    (case verdict when 'passed' then true when 'not configured' then null else false end) stored;
comment on column nightmill.gate_verdict.verdict is
    'passed, refused, waiting for an answer, rejected for good; or that the job does not have this gate';
comment on column nightmill.gate_verdict.decided_by is
    'The person who decided, or what decided for them; null where a rule did';
comment on column nightmill.gate_verdict.passed is 'null = the job does not configure this gate, which opens it';

-- A preview that somebody publishes is none any more: its params say so, and which run of nightmill_publish it was.
grant update (params) on nightmill.batch to nightmill_writer;
