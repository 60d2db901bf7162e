insert into nightmill.gate_verdict (batch_id, generation, gate, passed, details, config_hash)
values (%(batch_id)s, %(generation)s, %(gate)s, %(passed)s, %(details)s, %(config_hash)s)
