create temporary table if not exists gold (source_id text primary key, answers jsonb not null) on commit delete rows
