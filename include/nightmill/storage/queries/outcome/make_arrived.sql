create temporary table if not exists arrived (
    ordinal int8 not null,
    result_id int8 not null default nextval('nightmill.result_result_id_seq'), -- for what is stored as a new result
    class text,
    -- Without statistics the planner takes a flag for half of the rows, and `class is null` for so few that it loops.
    accepted bool not null generated always as (class is null) stored,
    code text,
    message text,
    retryable bool not null,
    sent_upstream bool not null,
    answer jsonb,
    notes text[], -- null, like citations: there are none
    citations jsonb,
    uncached_tokens int4,
    output_tokens int4,
    cache_read_tokens int4,
    cache_write_tokens int4,
    reasoning_tokens int4,
    odd_usage jsonb,
    model text,
    finish_reason text,
    asks_a_person bool not null
) on commit delete rows
