-- Those that can be rolled back to, the newest first.
select publish_seq
from nightmill.publication
where view_name = %(view_name)s and kind in ('publish', 'rollback')
order by publish_seq desc
limit %(keep)s
