delete from pg_temp.arrived
using nightmill.outcome
where arrived.class is null and outcome.batch_id = %(batch_id)s and outcome.ordinal = arrived.ordinal
    and outcome.ordinal between %(first)s and %(last)s
