delete from nightmill.deleted_key where part_id = %(part_id)s
