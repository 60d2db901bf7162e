-- Where in its range a shard has work: on a night that reuses nearly everything, its few unsettled items lie far apart,
-- and looking for them reads those places only. Shards of earlier plans look everywhere in their range.

alter table nightmill.shard add column ordinals int8multirange not null default '{(,)}';
comment on column nightmill.shard.ordinals is
    'Holds every item of the range that was unsettled when it was planned, and a few settled ones between them';
