-- Cache reads, cache writes and reasoning tokens have columns of their own, and usage that cannot be makes no price.

drop view nightmill.attempt_cost, nightmill.provider_batch_usage;

alter table nightmill.attempt
    add column cache_write_tokens int,
    add column reasoning_tokens int,
    add column odd_usage jsonb;
comment on column nightmill.attempt.cached_tokens is 'Part of prompt_tokens: read from the provider''s prompt cache';
comment on column nightmill.attempt.cache_write_tokens is 'Part of prompt_tokens: written to the prompt cache';
comment on column nightmill.attempt.reasoning_tokens is 'Part of completion_tokens: thought and not shown';
comment on column nightmill.attempt.odd_usage is
    'What the provider wrote where its usage cannot be; no count of it is taken then, and no price made of it';
comment on column nightmill.attempt.sent_upstream is
    'False where no model worked on the request, so that it is not paid: expired, cancelled, or refused';

update nightmill.attempt
set odd_usage = jsonb_strip_nulls(jsonb_build_object('prompt_tokens', prompt_tokens, 'cached_tokens', cached_tokens,
        'completion_tokens', completion_tokens)),
    prompt_tokens = null, cached_tokens = null, completion_tokens = null
where cached_tokens > prompt_tokens or (prompt_tokens is null and cached_tokens is not null)
    or least(prompt_tokens, cached_tokens, completion_tokens) < 0;

alter table nightmill.attempt
    add constraint attempt_usage_adds_up check (
        coalesce(cached_tokens, 0) + coalesce(cache_write_tokens, 0) <= coalesce(prompt_tokens, 0)
        and coalesce(reasoning_tokens, 0) <= coalesce(completion_tokens, 0)
        and least(prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, 0) = 0
        and (odd_usage is null or coalesce(prompt_tokens, completion_tokens) is null)
    );

alter table nightmill.result
    add column cached_tokens int,
    add column cache_write_tokens int,
    add column reasoning_tokens int;
grant select (cached_tokens, cache_write_tokens, reasoning_tokens) on nightmill.result to nightmill_console;

alter table nightmill.reuse_usage
    add column cached_tokens bigint not null default 0,
    add column cache_write_tokens bigint not null default 0,
    add column reasoning_tokens bigint not null default 0;

alter table nightmill.price add column cache_write_per_million numeric;
comment on column nightmill.price.cache_write_per_million is 'Of tokens written to a prompt cache; null = as input';

-- As before; a number that is stored as text because no counter can show it (negative, not finite, too long) is -1.
create or replace function nightmill.reported_number(usage jsonb, variadic path text[]) returns numeric
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case jsonb_typeof(usage #> path)
        when 'number' then (usage #>> path)::numeric
        when 'string' then case when usage #>> path ~ '^(-|nan|inf|[0-9]{19}|[0-9.]+e)' then -1 end
    end
$$;

-- The counts of a usage report; none of them where they cannot be, because they contradict one another or are no
-- counts of tokens. The rules of providers/dialects/usage.py, for the sums of a whole batch.
create function nightmill.reported_usage(usage jsonb, out prompt_tokens numeric, out cached_tokens numeric,
    out cache_write_tokens numeric, out completion_tokens numeric, out reasoning_tokens numeric, out is_odd boolean)
language sql immutable set search_path = pg_catalog, pg_temp as $$
    with told as (
        select coalesce(nightmill.reported_number(usage, 'input_tokens'),
                nightmill.reported_number(usage, 'prompt_tokens')) as prompt,
            coalesce(nightmill.reported_number(usage, 'input_tokens_details', 'cached_tokens'),
                nightmill.reported_number(usage, 'prompt_tokens_details', 'cached_tokens'),
                nightmill.reported_number(usage, 'cache_read_input_tokens'),
                nightmill.reported_number(usage, 'prompt_cache_hit_tokens'),
                nightmill.reported_number(usage, 'cached_tokens')) as cached,
            coalesce(nightmill.reported_number(usage, 'input_tokens_details', 'cache_write_tokens'),
                nightmill.reported_number(usage, 'prompt_tokens_details', 'cache_write_tokens'),
                nightmill.reported_number(usage, 'prompt_tokens_details', 'cache_creation_tokens'),
                nightmill.reported_number(usage, 'cache_creation_input_tokens')) as written,
            coalesce(nightmill.reported_number(usage, 'output_tokens'),
                nightmill.reported_number(usage, 'completion_tokens')) as completion,
            coalesce(nightmill.reported_number(usage, 'output_tokens_details', 'reasoning_tokens'),
                nightmill.reported_number(usage, 'output_tokens_details', 'thinking_tokens'),
                nightmill.reported_number(usage, 'completion_tokens_details', 'reasoning_tokens'),
                nightmill.reported_number(usage, 'reasoning_tokens')) as reasoning,
            nullif(nightmill.reported_number(usage, 'total_tokens'), 0) as total,
            not usage ? 'prompt_tokens' and usage ?| array['cache_read_input_tokens', 'cache_creation_input_tokens']
                as counts_cache_apart
    ), whole as (
        select told.*, prompt + case when counts_cache_apart then coalesce(cached, 0) + coalesce(written, 0) else 0 end
                as whole_prompt,
            completion + case when total in (prompt + completion + reasoning,
                prompt + coalesce(cached, 0) + coalesce(written, 0) + completion + reasoning)
                and total not in (prompt + completion,
                prompt + coalesce(cached, 0) + coalesce(written, 0) + completion) then reasoning else 0 end
                as whole_completion
        from told
    ), judged as (
        select whole.*, coalesce(cached, 0) + coalesce(written, 0) <= coalesce(whole_prompt, 1e15)
            and coalesce(reasoning, 0) <= coalesce(whole_completion, 1e15)
            and coalesce(total in (prompt + whole_completion, whole_prompt + whole_completion), true)
            and not exists (
                select from unnest(array[prompt, cached, written, completion, reasoning, total]) as count
                where count < 0 or count > 1e14 or count <> trunc(count)
            ) as can_be
        from whole
    )
    select case when can_be then whole_prompt end, case when can_be then cached end,
        case when can_be then written end, case when can_be then whole_completion end,
        case when can_be then reasoning end, not can_be
    from judged
$$;
comment on function nightmill.reported_usage(jsonb) is 'Counts of a usage report, or is_odd where they cannot be';

-- Cost at the price in force on the day the batch was made, with the batch discount; null where usage or price is
-- unknown. Tokens from and for the cache are part of the prompt tokens, reasoning is part of the completion tokens:
-- each is counted once.
create view nightmill.attempt_cost as
select attempt.*, provider_batch.provider_id,
    (price.input_per_million * (attempt.prompt_tokens - coalesce(attempt.cached_tokens, 0)
            - coalesce(attempt.cache_write_tokens, 0))
        + price.cached_input_per_million * coalesce(attempt.cached_tokens, 0)
        + coalesce(price.cache_write_per_million, price.input_per_million) * coalesce(attempt.cache_write_tokens, 0)
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

-- attempts + unattributed = reported, for each count. A report of no tokens at all is one where no line has an answer,
-- and none where some do. A part of a count that a report leaves out, or says is 0, is the sum of the attempts, as far as
-- the report has room.
create view nightmill.provider_batch_usage as
select provider_batch.batch_id, provider_batch.provider_batch_id, reported.prompt_tokens is not null as is_reported,
    reported.prompt_tokens as reported_prompt_tokens, reported.cached_tokens as reported_cached_tokens,
    reported.completion_tokens as reported_completion_tokens,
    reported.prompt_tokens - attributed.prompt_tokens as unattributed_prompt_tokens,
    reported.cached_tokens - attributed.cached_tokens as unattributed_cached_tokens,
    reported.completion_tokens - attributed.completion_tokens as unattributed_completion_tokens,
    reported.cache_write_tokens as reported_cache_write_tokens,
    reported.reasoning_tokens as reported_reasoning_tokens,
    reported.cache_write_tokens - attributed.cache_write_tokens as unattributed_cache_write_tokens,
    reported.reasoning_tokens - attributed.reasoning_tokens as unattributed_reasoning_tokens,
    coalesce(told.is_odd, false) as is_odd
from nightmill.provider_batch
left join (
    select batch_id, provider_batch_id, coalesce(sum(prompt_tokens), 0) as prompt_tokens,
        coalesce(sum(cached_tokens), 0) as cached_tokens, coalesce(sum(cache_write_tokens), 0) as cache_write_tokens,
        coalesce(sum(completion_tokens), 0) as completion_tokens,
        coalesce(sum(reasoning_tokens), 0) as reasoning_tokens,
        bool_or(class is null or class = 'output' or prompt_tokens > 0) as answered
    from nightmill.attempt
    group by batch_id, provider_batch_id
) as counted using (batch_id, provider_batch_id)
cross join lateral (
    select coalesce(counted.prompt_tokens, 0) as prompt_tokens, coalesce(counted.cached_tokens, 0) as cached_tokens,
        coalesce(counted.cache_write_tokens, 0) as cache_write_tokens,
        coalesce(counted.completion_tokens, 0) as completion_tokens,
        coalesce(counted.reasoning_tokens, 0) as reasoning_tokens, coalesce(counted.answered, false) as answered
) as attributed
cross join lateral nightmill.reported_usage(provider_batch.usage) as told
cross join lateral (
    select case when told.prompt_tokens > 0 or not attributed.answered then told.prompt_tokens end as prompt_tokens,
        coalesce(told.completion_tokens, attributed.completion_tokens) as completion_tokens
) as sums
cross join lateral (
    select sums.prompt_tokens, sums.completion_tokens,
        coalesce(nullif(told.cached_tokens, 0), least(attributed.cached_tokens,
            sums.prompt_tokens - coalesce(told.cache_write_tokens, 0))) as cached_tokens,
        coalesce(nullif(told.reasoning_tokens, 0), least(attributed.reasoning_tokens, sums.completion_tokens)) as reasoning_tokens
) as most
cross join lateral (
    select most.*, coalesce(nullif(told.cache_write_tokens, 0), least(attributed.cache_write_tokens,
        most.prompt_tokens - most.cached_tokens)) as cache_write_tokens
) as reported
where provider_batch.state in ('ENDED', 'COLLECTED');
comment on view nightmill.provider_batch_usage is
    'What the provider reports for each batch, and the part of it that no attempt explains: lost answers, for one';

grant select on nightmill.attempt_cost, nightmill.provider_batch_usage to nightmill_writer, nightmill_console;
grant execute on function nightmill.reported_usage(jsonb) to nightmill_writer, nightmill_console;
