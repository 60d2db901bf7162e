select count(*) from {rows} where part_id = %(part_id)s and gap_reason is null
