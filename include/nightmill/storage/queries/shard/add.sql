insert into nightmill.shard (batch_id, first_ordinal, last_ordinal, ordinals, items, prompt_tokens)
values (%(batch_id)s, %(first_ordinal)s, %(last_ordinal)s, %(ordinals)s, %(items)s, %(prompt_tokens)s)
