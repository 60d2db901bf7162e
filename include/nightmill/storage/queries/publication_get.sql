select publish_seq, kind, published_at
from nightmill.publication
where view_name = %(view_name)s and publish_seq = %(publish_seq)s
