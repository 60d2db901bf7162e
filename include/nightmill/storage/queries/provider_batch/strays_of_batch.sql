select count(*) as batches, coalesce(sum(answers), 0)::bigint as answers,
    coalesce(sum(prompt_tokens), 0)::bigint as prompt, coalesce(sum(output_tokens), 0)::bigint as completion,
    coalesce(sum(cache_read_tokens), 0)::bigint as cached
from nightmill.stray_batch
where batch_id = %(batch_id)s and booked_at is not null
