select %(batch_id)s::bigint as part_id
union
select part_id from nightmill.publication_part where batch_id = %(batch_id)s
order by part_id
