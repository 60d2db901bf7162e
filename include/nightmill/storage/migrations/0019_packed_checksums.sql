-- A payload object is checked as it lies in the store, before anything unpacks it: a quarter of the bytes. Objects that
-- were written before keep the checksum of what they unpack to.

alter table nightmill.payload_segment
    alter column raw_sha256 drop not null,
    add column object_sha256 bytea,
    add constraint payload_segment_checksum check (num_nonnulls(raw_sha256, object_sha256) = 1);
comment on column nightmill.payload_segment.raw_sha256 is 'Of the unpacked lines; of objects older than object_sha256';
