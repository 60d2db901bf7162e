-- What runs as the owner finds what it names in pg_catalog, whoever calls it. The session's pg_temp, into which everybody
-- may put tables, functions and types, is looked into first unless the path names it: so it stands last.

do $$
declare
    ours regprocedure;
begin
    for ours in
        select oid from pg_catalog.pg_proc where pronamespace = 'nightmill'::regnamespace
    loop
        execute format('alter function %s set search_path = pg_catalog, pg_temp', ours);
    end loop;
end $$;
