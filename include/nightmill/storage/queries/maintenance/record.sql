-- An alert that stands for days is kept once a day.
insert into nightmill.maintenance_action (sweep, batch_id, what, alert)
select %(sweep)s, %(batch_id)s, %(what)s, %(alert)s
where not exists (
    select from nightmill.maintenance_action as earlier
    where earlier.sweep = %(sweep)s and earlier.what = %(what)s
        and earlier.batch_id is not distinct from %(batch_id)s::int8
        and earlier.done_at > clock_timestamp() - interval '1 day'
)
