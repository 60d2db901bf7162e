-- The console's login reads where things stand and what they used: no document, prompt, answer or provider's message.

grant usage on schema nightmill to nightmill_console;
grant select on nightmill.batch, nightmill.shard, nightmill.provider_batch, nightmill.attempt, nightmill.item_bucket,
    nightmill.transition, nightmill.gate_verdict, nightmill.price, nightmill.publication, nightmill.published
    to nightmill_console;
grant select (batch_id, ordinal, kind, result_id) on nightmill.outcome to nightmill_console;
grant select (batch_id, ordinal, tokens) on nightmill.item to nightmill_console;
grant select (result_id, prompt_tokens, completion_tokens) on nightmill.result to nightmill_console;
