select part_id, batch_id, interval_start, interval_end, frozen_at, counts, gaps, shown_since
from nightmill.publication_part
where publish_seq = %(publish_seq)s
order by interval_start, interval_end, batch_id
