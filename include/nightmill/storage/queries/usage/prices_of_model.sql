select model, effective_from, input_per_million, cached_input_per_million, output_per_million, batch_discount,
    cache_write_per_million
from nightmill.price
where model = %(model)s
