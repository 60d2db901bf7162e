select pg_relation_size(to_regclass(
    'nightmill.' || quote_ident(nightmill.partition_name(%(parent)s, %(part_id)s)))) / 8192
