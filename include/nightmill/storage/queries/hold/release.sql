update nightmill.hold set released_at = clock_timestamp(), released_by = %(released_by)s
where hold_id = any(%(hold_ids)s) and released_at is null
