update pg_temp.sent_again set tokens = measured.tokens, skip_reason = measured.skip_reason
from unnest(%(ordinals)s::int8[], %(tokens)s::int4[], %(skip_reasons)s::text[])
    as measured (ordinal, tokens, skip_reason)
where sent_again.ordinal = measured.ordinal
