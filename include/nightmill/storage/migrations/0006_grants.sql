-- The writer fills the ledger and moves states; it owns nothing. Readers see views and what they show.

grant usage on schema nightmill, results to nightmill_writer, nightmill_reader;

grant select on all tables in schema nightmill to nightmill_writer;
grant insert on nightmill.contract, nightmill.batch, nightmill.payload_segment, nightmill.shard,
    nightmill.provider_batch, nightmill.attempt, nightmill.result, nightmill.outcome, nightmill.dead_letter,
    nightmill.quarantine, nightmill.gate_verdict, nightmill.publication, nightmill.published to nightmill_writer;
grant update (state, state_reason, blocked_from, blocked_by, generation, source_query, source_parameters,
    source_snapshot, item_count, prompt_tokens, content_hash, estimate, counts, frozen_at, ended_at, note)
    on nightmill.batch to nightmill_writer;
grant update (state, state_reason, lease, wake_at, settled_at) on nightmill.shard to nightmill_writer;
grant update (state, state_reason, input_file_id, provider_id, adopted, raw_status, output_file_id, error_file_id,
    counts, usage, problems, uploaded_at, submitted_at, ended_at, collected_at)
    on nightmill.provider_batch to nightmill_writer;
grant update (effective, validators_hash) on nightmill.result to nightmill_writer;
grant update (batch_id, publish_seq, published_at, gaps) on nightmill.published to nightmill_writer;
grant delete on nightmill.shard to nightmill_writer;

grant select on nightmill.published, nightmill.publication to nightmill_reader;

revoke all on function nightmill.record_transition(text, bigint, bigint, text, text, text, int) from public;
