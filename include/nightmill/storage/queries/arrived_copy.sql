copy pg_temp.arrived (ordinal, class, code, message, retryable, sent_upstream, answer, notes, citations, prompt_tokens,
    completion_tokens, cached_tokens, model, finish_reason) from stdin
