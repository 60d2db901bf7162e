-- What earlier tries of the same work left.
select part_id
from nightmill.part_build
where view_name = %(view_name)s and batch_id is not distinct from %(batch_id)s
