insert into nightmill.provider_batch as one (batch_id, shard_id, job, token, account, adapter, model, ordinals,
    requests, prompt_tokens, file_bytes)
values (%(batch_id)s, %(shard_id)s, %(job)s, %(token)s, %(account)s, %(adapter)s, %(model)s, %(ordinals)s,
    %(requests)s, %(prompt_tokens)s, %(file_bytes)s)
returning {columns}
