-- Where each quotation of a row stands, for readers; a stored answer that is checked again gets its new places.

grant update (citations) on nightmill.result to nightmill_writer;

do $$
declare
    view_name text;
begin
    for view_name in select definition.view_name from nightmill.view_definition as definition loop
        execute format('alter table nightmill.%I add column if not exists citations jsonb', 'rows_' || view_name);
    end loop;
end $$;
