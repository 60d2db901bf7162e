copy pg_temp.arrived (ordinal, class, code, message, retryable, sent_upstream, answer, notes, citations, prompt_tokens,
    completion_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, odd_usage, model, finish_reason) from stdin
