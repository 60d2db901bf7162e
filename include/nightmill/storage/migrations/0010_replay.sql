-- Replay: a child batch takes over its parent's manifest, and dead letters are copied with where they come from.

-- A dead letter that was copied, because its key gave up before or its batch was replayed without it, keeps the time
-- at which it gave up and the batch in which it did, so that its contract and its age stay true.
alter table nightmill.dead_letter add column origin_batch_id bigint;
comment on column nightmill.dead_letter.origin_batch_id is
    'The batch in which the item gave up, where that is another one; null = batch_id';
comment on column nightmill.dead_letter.created_at is 'When the item gave up; a copy keeps the time of its origin';

-- One child per parent. A child that came to nothing does not count: cancelled before it was frozen, or a dry run.
alter table nightmill.batch drop constraint batch_parent_batch_id_key;
create unique index batch_one_child on nightmill.batch (parent_batch_id)
    where state <> 'ESTIMATED' and (state <> 'CANCELLED' or frozen_at is not null);
