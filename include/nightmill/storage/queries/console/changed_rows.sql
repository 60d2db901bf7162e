select source_id, tenant, old, new
from nightmill.changed_rows(%(new)s::bigint, %(old)s::bigint, %(publication)s::bigint, %(fields)s::text[],
    %(tenants)s::text[], %(most)s::int)
