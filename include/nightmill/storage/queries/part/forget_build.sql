with tombstones as (
    delete from nightmill.deleted_key where part_id = %(part_id)s and not %(shown)s
)
delete from nightmill.part_build where part_id = %(part_id)s
