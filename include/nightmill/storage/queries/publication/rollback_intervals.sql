-- The intervals whose rows a rollback changed: of what it took back, and of what it brought back.
select data_interval_start, data_interval_end
from nightmill.batch
where batch_id = any(%(taken_back)s) and data_interval_start is not null and data_interval_end is not null
union
select part.interval_start, part.interval_end
from nightmill.publication_part as part
join nightmill.publication using (publish_seq)
where part.publish_seq = %(publish_seq)s and part.shown_since = publication.published_at
    and part.interval_start is not null and part.interval_end is not null
order by 1, 2
