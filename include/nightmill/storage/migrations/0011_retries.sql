-- What retries, cut-out items and costs need to be told from the tables alone.

alter table nightmill.attempt
    add column attempt_no int2 not null default 1,
    add column backoff_s real;
comment on column nightmill.attempt.attempt_no is 'Counts from 1 per item of a batch, capacity failures included';
comment on column nightmill.attempt.backoff_s is
    'Seconds from the end of the attempt before to the intent of this one; null for the first';
comment on column nightmill.attempt.sent_upstream is
    'False where the provider says that it never executed the request: expired, cancelled or refused before';

alter table nightmill.provider_batch
    add column refused text,
    add constraint provider_batch_refused_known check (refused in ('capacity', 'named', 'unnamed')),
    add constraint provider_batch_refused_ended check (refused is null or state = 'ABANDONED');
comment on column nightmill.provider_batch.refused is
    'How the provider''s validation refused the whole file: no room, bad lines by number, or no line named';
grant update (refused) on nightmill.provider_batch to nightmill_writer;

alter table nightmill.shard add column hold_until timestamptz;
comment on column nightmill.shard.hold_until is 'The provider asked to be left alone until then (Retry-After)';
grant update (hold_until) on nightmill.shard to nightmill_writer;

-- A number in a provider's usage report, or null for anything else that may stand there.
create function nightmill.reported_number(usage jsonb, variadic path text[]) returns numeric
language sql immutable set search_path = pg_catalog as $$
    select case when jsonb_typeof(usage #> path) = 'number' then least((usage #>> path)::numeric, 1e15) end
$$;

-- Cost at the price in force on the day the batch was made, with the batch discount; null where usage or price is
-- unknown. Cached tokens are part of the prompt tokens and are counted once.
create view nightmill.attempt_cost as
select attempt.*, provider_batch.provider_id,
    (price.input_per_million * (attempt.prompt_tokens - coalesce(attempt.cached_tokens, 0))
        + price.cached_input_per_million * coalesce(attempt.cached_tokens, 0)
        + price.output_per_million * coalesce(attempt.completion_tokens, 0))
        / 1000000 * (1 - price.batch_discount) as cost
from nightmill.attempt
join nightmill.provider_batch using (batch_id, provider_batch_id)
join nightmill.batch using (batch_id)
left join lateral (
    select price.*
    from nightmill.price
    where price.model = provider_batch.model
        and price.effective_from <= (batch.created_at at time zone 'UTC')::date
    order by price.effective_from desc
    limit 1
) as price on true;
comment on view nightmill.attempt_cost is 'Attempts with the provider''s batch id and their cost in US dollars';

-- attempts + unattributed = reported, for each count. A report of no prompt tokens at all is no report.
create view nightmill.provider_batch_usage as
select provider_batch.batch_id, provider_batch.provider_batch_id, reported.prompt_tokens is not null as is_reported,
    reported.prompt_tokens as reported_prompt_tokens, reported.cached_tokens as reported_cached_tokens,
    reported.completion_tokens as reported_completion_tokens,
    reported.prompt_tokens - attributed.prompt_tokens as unattributed_prompt_tokens,
    reported.cached_tokens - attributed.cached_tokens as unattributed_cached_tokens,
    reported.completion_tokens - attributed.completion_tokens as unattributed_completion_tokens
from nightmill.provider_batch
cross join lateral (
    select nullif(coalesce(nightmill.reported_number(usage, 'input_tokens'),
            nightmill.reported_number(usage, 'prompt_tokens')), 0) as prompt_tokens,
        coalesce(nightmill.reported_number(usage, 'input_tokens_details', 'cached_tokens'),
            nightmill.reported_number(usage, 'prompt_tokens_details', 'cached_tokens'), 0) as cached_tokens,
        coalesce(nightmill.reported_number(usage, 'output_tokens'),
            nightmill.reported_number(usage, 'completion_tokens'), 0) as completion_tokens
) as reported
left join (
    select batch_id, provider_batch_id, coalesce(sum(prompt_tokens), 0) as prompt_tokens,
        coalesce(sum(cached_tokens), 0) as cached_tokens, coalesce(sum(completion_tokens), 0) as completion_tokens
    from nightmill.attempt
    group by batch_id, provider_batch_id
) as counted using (batch_id, provider_batch_id)
cross join lateral (
    select coalesce(counted.prompt_tokens, 0) as prompt_tokens, coalesce(counted.cached_tokens, 0) as cached_tokens,
        coalesce(counted.completion_tokens, 0) as completion_tokens
) as attributed
where provider_batch.state in ('ENDED', 'COLLECTED');
comment on view nightmill.provider_batch_usage is
    'What the provider reports for each batch, and the part of it that no attempt explains: lost answers, for one';

grant select on nightmill.attempt_cost, nightmill.provider_batch_usage to nightmill_writer, nightmill_console;
