-- Which Airflow the ledger belongs to. Batches are found by DAG and run, and another Airflow has runs of the same names.

create table nightmill.deployment (
    deployment_id text not null,
    pinned_at timestamptz not null default clock_timestamp(),
    only_row boolean primary key default true check (only_row)
);
comment on table nightmill.deployment is
    'The Airflow variable nightmill_deployment of the one Airflow that uses this ledger; empty until its first task';
grant select, insert on nightmill.deployment to nightmill_writer;
grant select on nightmill.deployment to nightmill_console;
