-- Nobody calls a function of ours without a grant, now or when a later migration makes one. A trigger function that
-- everybody may use can be put on a table of one's own, where it writes history as the owner.

alter default privileges revoke execute on functions from public;
revoke execute on all functions in schema nightmill from public;

grant execute on function nightmill.fence_shared(bigint), nightmill.fence_exclusive(bigint),
    nightmill.partition_name(text, bigint) to nightmill_writer;
-- The view provider_batch_usage calls it with the rights of whoever reads the view.
grant execute on function nightmill.reported_number(jsonb, text[]) to nightmill_writer, nightmill_console;
