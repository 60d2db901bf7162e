-- A person cleared the task that a breaker had stopped: only what settles from now on counts.
update nightmill.breaker set state = 'watching', since = clock_timestamp(), cause = null, remedy = null
where batch_id = %(batch_id)s and state = 'open' and cause = %(cause)s
