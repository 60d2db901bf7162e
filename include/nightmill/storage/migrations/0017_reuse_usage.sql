-- What reuse saves is summed while it is settled: asking each reused answer again takes two seconds for a million.

create table nightmill.reuse_usage (
    batch_id bigint not null references nightmill.batch,
    answers bigint not null,
    prompt_tokens bigint not null,
    completion_tokens bigint not null,
    estimated bigint not null
);
create index reuse_usage_batch on nightmill.reuse_usage (batch_id);
comment on table nightmill.reuse_usage is
    'What reused answers had used when they were made, a row for each settling; replays and older batches have none';

grant select, insert on nightmill.reuse_usage to nightmill_writer;
grant select on nightmill.reuse_usage to nightmill_console;
