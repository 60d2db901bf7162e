insert into nightmill.price (model, effective_from, input_per_million, cached_input_per_million, output_per_million,
    batch_discount, cache_write_per_million)
values (%(model)s, %(effective_from)s, %(input)s, %(cached_input)s, %(output)s, %(batch_discount)s, %(cache_write)s)
on conflict (model, effective_from) do update set
    input_per_million = excluded.input_per_million,
    cached_input_per_million = excluded.cached_input_per_million,
    output_per_million = excluded.output_per_million,
    batch_discount = excluded.batch_discount,
    cache_write_per_million = excluded.cache_write_per_million
