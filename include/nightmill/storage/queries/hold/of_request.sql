select hold_id, view_name, interval_start, interval_end, publish_seq, taken_back, reason, held_at, held_by, revoke,
    revoked, released_at, released_by
from nightmill.hold
where request = %(request)s
