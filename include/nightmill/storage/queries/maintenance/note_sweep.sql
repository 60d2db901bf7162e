insert into nightmill.maintenance_sweep (sweep) values (%(sweep)s)
on conflict (sweep) do update set ran_at = clock_timestamp()
