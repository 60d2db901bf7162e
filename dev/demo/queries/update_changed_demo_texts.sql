update demo.distribution_text as held
set source_version = arriving.source_version,
    distribution = arriving.distribution,
    version = arriving.version,
    kind = arriving.kind,
    file_name = arriving.file_name,
    body = arriving.body,
    loaded_at = now()
from arriving_text as arriving
where arriving.source_id = held.source_id
  and (held.source_version, held.distribution, held.version, held.kind, held.file_name, held.body)
      is distinct from
      (arriving.source_version, arriving.distribution, arriving.version, arriving.kind, arriving.file_name,
       arriving.body);
