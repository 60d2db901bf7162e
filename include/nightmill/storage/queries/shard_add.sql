insert into nightmill.shard (batch_id, first_ordinal, last_ordinal, items, prompt_tokens)
values (%(batch_id)s, %(first_ordinal)s, %(last_ordinal)s, %(items)s, %(prompt_tokens)s)
