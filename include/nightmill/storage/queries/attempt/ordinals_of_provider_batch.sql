select ordinal
from nightmill.attempt
where batch_id = %(batch_id)s and provider_batch_id = %(provider_batch_id)s and %(ordinals)s::int8multirange @> ordinal
