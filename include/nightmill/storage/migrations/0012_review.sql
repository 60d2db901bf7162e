-- Items that wait in review keep their context as dead letters do; a provider's report of no tokens is a report.

alter table nightmill.outcome
    drop constraint outcome_class,
    add constraint outcome_class check (
        (kind in ('dead_lettered', 'in_review')) <= (class is not null and code is not null)
    );

alter table nightmill.dead_letter
    add column ended_as text not null default 'dead_lettered',
    add constraint dead_letter_ended_as_known check (ended_as in ('dead_lettered', 'in_review'));
comment on table nightmill.dead_letter is
    'Context of items that gave up or wait in review; the message may quote a provider';
comment on column nightmill.dead_letter.ended_as is
    'The kind of its outcome when it was settled; outlives the outcome, so that later batches can copy it';

-- attempts + unattributed = reported, for each count. A report of no tokens at all is one where no line has an answer,
-- and none where some do.
create or replace view nightmill.provider_batch_usage as
select provider_batch.batch_id, provider_batch.provider_batch_id, reported.prompt_tokens is not null as is_reported,
    reported.prompt_tokens as reported_prompt_tokens, reported.cached_tokens as reported_cached_tokens,
    reported.completion_tokens as reported_completion_tokens,
    reported.prompt_tokens - attributed.prompt_tokens as unattributed_prompt_tokens,
    reported.cached_tokens - attributed.cached_tokens as unattributed_cached_tokens,
    reported.completion_tokens - attributed.completion_tokens as unattributed_completion_tokens
from nightmill.provider_batch
left join (
    select batch_id, provider_batch_id, coalesce(sum(prompt_tokens), 0) as prompt_tokens,
        coalesce(sum(cached_tokens), 0) as cached_tokens, coalesce(sum(completion_tokens), 0) as completion_tokens,
        bool_or(class is null or class = 'output' or prompt_tokens > 0) as answered
    from nightmill.attempt
    group by batch_id, provider_batch_id
) as counted using (batch_id, provider_batch_id)
cross join lateral (
    select coalesce(counted.prompt_tokens, 0) as prompt_tokens, coalesce(counted.cached_tokens, 0) as cached_tokens,
        coalesce(counted.completion_tokens, 0) as completion_tokens, coalesce(counted.answered, false) as answered
) as attributed
cross join lateral (
    select coalesce(nightmill.reported_number(usage, 'input_tokens'),
            nightmill.reported_number(usage, 'prompt_tokens')) as prompt_tokens,
        coalesce(nightmill.reported_number(usage, 'input_tokens_details', 'cached_tokens'),
            nightmill.reported_number(usage, 'prompt_tokens_details', 'cached_tokens'), 0) as cached_tokens,
        coalesce(nightmill.reported_number(usage, 'output_tokens'),
            nightmill.reported_number(usage, 'completion_tokens'), 0) as completion_tokens
) as told
cross join lateral (
    select case when told.prompt_tokens > 0 or not attributed.answered then told.prompt_tokens end as prompt_tokens,
        told.cached_tokens, told.completion_tokens
) as reported
where provider_batch.state in ('ENDED', 'COLLECTED');
