copy pg_temp.arrived (ordinal, class, code, message, retryable, sent_upstream, answer, notes, citations, uncached_tokens,
    output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, odd_usage, model, finish_reason,
    asks_a_person) from stdin
