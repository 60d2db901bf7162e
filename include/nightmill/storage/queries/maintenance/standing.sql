select
    (select min(ran_at) from nightmill.maintenance_sweep) as oldest_sweep,
    (select min(created_at) from nightmill.batch) as oldest_batch,
    (select count(*) from nightmill.maintenance_action
        where alert and done_at > clock_timestamp() - interval '1 day') as alerts
