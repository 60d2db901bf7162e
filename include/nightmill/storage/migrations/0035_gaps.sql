-- Gaps of a result: which items may not be missing, rows that stand in for those that are, and what readers are told.

alter table nightmill.item add column required boolean not null default false;
comment on column nightmill.item.required is 'source.columns.required: a missing answer is never allowed';

alter table nightmill.batch add column gap_facts jsonb;
comment on column nightmill.batch.gap_facts is
    'How much is accepted, which gaps there are, how each is to be filled, and what readers may see (domain/gaps.py)';
grant update (gap_facts) on nightmill.batch to nightmill_writer;

do $$
declare
    parent regclass;
begin
    for parent in
        select oid::regclass from pg_class
        where relnamespace = 'nightmill'::regnamespace and relkind = 'p' and relname like 'rows\_%'
    loop
        execute format('alter table %s add column gap_reason text, alter column result_id drop not null', parent);
    end loop;
end $$;

-- Answers settle while a batch runs. Rows that stand in for gaps come after that, while it is judged.
create or replace function nightmill.guard_settling() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
    touched bigint;
    lowest bigint;
    highest bigint;
    state_now text;
    planned bigint;
    accepts boolean;
    strange boolean := false;
    without_answer boolean := false;
    answers boolean := false;
    stand_ins boolean := false;
begin
    if tg_table_name not in ('outcome', 'attempt') then
        select bool_or(part_id <> batch_id), bool_or(gap_reason is null and result_id is null),
            bool_or(gap_reason is null), bool_or(gap_reason is not null)
        into strange, without_answer, answers, stand_ins
        from written;
    end if;
    for touched, lowest, highest in select batch_id, min(ordinal), max(ordinal) from written group by batch_id loop
        perform nightmill.fence_shared(touched);
        select state, item_count into state_now, planned from nightmill.batch where batch_id = touched;
        accepts := coalesce(state_now in ('PLANNING', 'QUEUED', 'RUNNING', 'BLOCKED'), false);
        if stand_ins then
            accepts := coalesce(state_now = 'VALIDATING', false) and not answers;
        end if;
        if state_now = 'CANCELLED' and tg_table_name = 'attempt' then
            select bool_and(carrier.state is not distinct from 'ENDED') into accepts
            from (select distinct provider_batch_id from written where batch_id = touched) as carried
            left join nightmill.provider_batch as carrier using (provider_batch_id);
        end if;
        if not accepts then
            raise exception 'batch % is %: nothing can be settled in it', touched, coalesce(state_now, 'unknown')
                using errcode = 'NM004';
        end if;
        if lowest < 0 or highest >= planned then
            raise exception 'batch %: an ordinal lies outside its manifest of % items', touched, planned
                using errcode = 'NM004';
        end if;
    end loop;
    if strange then
        raise exception 'a row lies in a part of another batch than its own' using errcode = 'NM004';
    end if;
    if without_answer then
        raise exception 'a row has neither a result nor a gap_reason' using errcode = 'NM004';
    end if;
    return null;
end $$;

-- A gate that is cleared may judge by other rules: what stood in for gaps goes, and is written anew.
create function nightmill.drop_gap_rows(of_batch bigint) returns void language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
    shown_by text;
begin
    perform nightmill.fence_shared(of_batch);
    select view_name into shown_by from nightmill.batch where batch_id = of_batch and state = 'VALIDATING';
    if shown_by is null then
        raise exception 'batch % is not judged now: its rows stay', of_batch using errcode = 'NM004';
    end if;
    execute pg_catalog.format(
        'delete from nightmill.%I where part_id = $1 and batch_id = $1 and gap_reason is not null', 'rows_' || shown_by)
        using of_batch;
end $$;
revoke all on function nightmill.drop_gap_rows(bigint) from public;
grant execute on function nightmill.drop_gap_rows(bigint) to nightmill_writer;

create view results.published_intervals as
select published.view_name, listed.interval_start, listed.interval_end, listed.batch_id, listed.publish_seq,
    listed.shown_since, listed.counts, listed.gaps, batch.gap_facts,
    coalesce((batch.gap_facts #>> '{readers,searchable}')::boolean, true) as searchable
from nightmill.published
join nightmill.publication_part as listed using (publish_seq)
join nightmill.batch on batch.batch_id = listed.batch_id;
comment on view results.published_intervals is
    'What each view shows now: a row for each data interval, or for its one batch, with its gaps';

create view results.published_views as
select published.view_name, published.batch_id, published.publish_seq, published.published_at as shown_since,
    publication.counts, published.gaps,
    case when published.mode <> 'by_interval' then batch.gap_facts end as gap_facts,
    (
        select coalesce(bool_and(part.searchable), true)
        from results.published_intervals as part
        where part.view_name = published.view_name
    ) as searchable
from nightmill.published
join nightmill.publication using (publish_seq)
join nightmill.batch on batch.batch_id = published.batch_id;
comment on view results.published_views is
    'What each view shows now: since when, with which counts and gaps; by_interval: the gaps are in published_intervals';

grant select on results.published_views, results.published_intervals to nightmill_reader, nightmill_writer;
