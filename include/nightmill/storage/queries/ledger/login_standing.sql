-- What the login is: a superuser counts as a member of every role, so it is told apart.
select current_user::text as login,
       (select rolsuper from pg_catalog.pg_roles where rolname = current_user) as superuser,
       exists (select from pg_catalog.pg_roles where rolname = 'nightmill_writer'
               and pg_catalog.pg_has_role(current_user, oid, 'usage')) as writer,
       exists (select from pg_catalog.pg_roles where rolname = 'nightmill_owner'
               and pg_catalog.pg_has_role(current_user, oid, 'member')) as owner
