with letters as (
    delete from nightmill.dead_letter where batch_id = %(batch_id)s
), segments as (
    delete from nightmill.payload_segment where batch_id = %(batch_id)s
)
update nightmill.batch set retired_at = clock_timestamp() where batch_id = %(batch_id)s
