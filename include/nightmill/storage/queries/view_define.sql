-- Its condition is checked before any function of a reader's query sees a row: other rows belong to batches that are not
-- published.
create or replace view {view} with (security_barrier = true) as
select {names}
from {rows}
where batch_id = (select published.batch_id from nightmill.published where published.view_name = {name});

grant select on {view} to nightmill_reader, nightmill_writer;
