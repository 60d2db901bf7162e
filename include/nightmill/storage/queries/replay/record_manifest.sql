with manifest as (
    select sum(tokens)::bigint as tokens, sha256(string_agg(key || content_hash, ''::bytea order by ordinal)) as hash
    from {items}
)
update nightmill.batch set
    source_query = parent.source_query,
    source_parameters = parent.source_parameters,
    source_snapshot = parent.source_snapshot,
    item_count = parent.item_count,
    prompt_tokens = coalesce(manifest.tokens, 0),
    content_hash = coalesce(manifest.hash, parent.content_hash),
    frozen_at = parent.frozen_at
from nightmill.batch as parent, manifest
where batch.batch_id = %(batch_id)s and parent.batch_id = %(parent_id)s
