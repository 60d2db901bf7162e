insert into nightmill.part_build (part_id, view_name, batch_id)
values (nextval('nightmill.merged_part'), %(view_name)s, %(batch_id)s)
returning part_id
