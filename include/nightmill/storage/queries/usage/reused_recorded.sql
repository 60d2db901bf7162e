-- Nothing where the sums do not tell of all reused items.
select answers as requests, prompt_tokens as prompt, output_tokens as completion, cache_read_tokens as cached,
    estimated, cache_write_tokens as cache_written, reasoning_tokens as reasoning
from (
    select coalesce(sum(answers), 0)::bigint as answers, coalesce(sum(prompt_tokens), 0)::bigint as prompt_tokens,
        coalesce(sum(output_tokens), 0)::bigint as output_tokens,
        coalesce(sum(cache_read_tokens), 0)::bigint as cache_read_tokens,
        coalesce(sum(cache_write_tokens), 0)::bigint as cache_write_tokens,
        coalesce(sum(reasoning_tokens), 0)::bigint as reasoning_tokens,
        coalesce(sum(estimated), 0)::bigint as estimated
    from nightmill.reuse_usage
    where batch_id = %(batch_id)s
) as recorded
where answers = (select count(*) from nightmill.outcome where batch_id = %(batch_id)s and kind = 'reused')
