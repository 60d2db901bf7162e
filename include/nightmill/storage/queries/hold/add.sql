insert into nightmill.hold (view_name, interval_start, interval_end, publish_seq, taken_back, reason, held_by, request,
    revoke)
values (%(view_name)s, %(interval_start)s, %(interval_end)s, %(publish_seq)s, %(taken_back)s, %(reason)s, %(held_by)s,
    %(request)s, %(revoke)s)
returning hold_id, view_name, interval_start, interval_end, publish_seq, taken_back, reason, held_at, held_by, revoke,
    revoked, released_at, released_by
