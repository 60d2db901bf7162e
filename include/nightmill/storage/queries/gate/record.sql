insert into nightmill.gate_verdict (batch_id, generation, gate, verdict, details, config_hash, decided_by)
values (%(batch_id)s, %(generation)s, %(gate)s, %(verdict)s, %(details)s, %(config_hash)s, %(decided_by)s)
