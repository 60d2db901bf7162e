-- Views belong to a role that sees published rows only (queries/view_protect.sql; `apply` changes those of before).

grant usage on schema nightmill, results to nightmill_view_owner;
grant select on nightmill.published to nightmill_view_owner;
