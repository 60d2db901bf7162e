-- Another batch of the interval that has not ended; a preview waits for a person and holds up nobody.
select batch_id, run_id, state
from nightmill.batch
where ended_at is null and state <> 'STAGED' and view_name = %(view_name)s
    and data_interval_start = %(data_interval_start)s and data_interval_end = %(data_interval_end)s
    and (dag_id, run_id) <> (%(dag_id)s, %(run_id)s)
order by batch_id
limit 1
