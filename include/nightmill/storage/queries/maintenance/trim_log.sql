-- Lines that are older than their job keeps them; those of no batch, or of a job that is not named, by the default.
with old as (
    select action.action_id
    from nightmill.maintenance_action as action
    left join nightmill.batch on batch.batch_id = action.batch_id
    left join unnest(%(jobs)s::text[], %(days)s::float8[]) as kept (job, days) on kept.job = batch.job
    where action.done_at < %(today)s::timestamptz - coalesce(kept.days, %(default_days)s) * interval '1 day'
), deleted as (
    delete from nightmill.maintenance_action
    where not %(dry_run)s and action_id in (select action_id from old)
)
select count(*) from old
