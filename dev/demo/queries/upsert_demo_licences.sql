insert into demo.declared_licence as held (source_id, spdx_ids)
select source_id, spdx_ids
from arriving_text
where cardinality(spdx_ids) > 0
on conflict (source_id) do update set spdx_ids = excluded.spdx_ids
where held.spdx_ids is distinct from excluded.spdx_ids;
