-- A view reads as its owner, and that role sees the rows of the published parts only: no function of a reader's own is
-- called with another row. The owner of a view must be able to create in its schema at that moment, and never again.
alter table {rows} enable row level security;

drop policy if exists published on {rows};

create policy published on {rows} for select to nightmill_view_owner
using ({shown});

drop policy if exists written on {rows};

create policy written on {rows} to nightmill_writer using (true) with check (true);

grant select on {rows} to nightmill_view_owner;

grant create on schema results to nightmill_view_owner;

alter view {view} owner to nightmill_view_owner;

revoke create on schema results from nightmill_view_owner;
