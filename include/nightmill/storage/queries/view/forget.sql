-- What was published and paid stays in the ledger; nothing is shown, held or defined any more.
with lifted as (
    update nightmill.hold set released_at = clock_timestamp(), released_by = %(retired_by)s,
        revoked = case when revoke then coalesce(revoked, 0) end
    where view_name = %(view_name)s and released_at is null
), hidden as (
    delete from nightmill.published where view_name = %(view_name)s
)
delete from nightmill.view_definition where view_name = %(view_name)s
