insert into nightmill.payload_segment (batch_id, segment, first_ordinal, last_ordinal, object_path, object_bytes,
    object_sha256)
values (%(batch_id)s, %(segment)s, %(first_ordinal)s, %(last_ordinal)s, %(object_path)s, %(object_bytes)s,
    %(object_sha256)s)
