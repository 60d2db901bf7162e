create table if not exists nightmill.migration (
    number int primary key,
    name text not null,
    applied_at timestamptz not null default clock_timestamp()
)
