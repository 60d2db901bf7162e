-- Lines that a refused file's complaints name by number only: some providers count from 1, some from 0. They are tested
-- apart from the others before anything is given up.

alter table nightmill.provider_batch
    add column suspects jsonb,
    add constraint provider_batch_suspects_named check (suspects is null or refused = 'named');
comment on column nightmill.provider_batch.suspects is
    'Groups of ordinals, each of which goes into a file of its own: what the named lines may be';
comment on column nightmill.provider_batch.refused is
    'How the provider''s validation refused the whole file: no room, bad lines by number or id, or no line named';
grant update (suspects) on nightmill.provider_batch to nightmill_writer;
