update pg_temp.sent_again set tokens = measured.tokens, skip_reason = measured.skip_reason,
    skip_class = measured.skip_class, skip_message = measured.skip_message
from unnest(%(ordinals)s::int8[], %(tokens)s::int4[], %(skip_reasons)s::text[], %(skip_classes)s::text[],
    %(skip_messages)s::text[]) as measured (ordinal, tokens, skip_reason, skip_class, skip_message)
where sent_again.ordinal = measured.ordinal
