-- The answers of what was taken back or rejected, except those that stay shown. A revoked revision counts as a superseded one.
with back as (
    select distinct taken.result_id
    from {rows} as taken
    where taken.batch_id = any(%(taken_back)s) and taken.gap_reason is null
), shown as (
    select distinct kept.result_id
    from {rows} as kept
    where kept.part_id = any(%(shown)s)
), revoked as (
    select result_id from back
    except
    select result_id from shown
)
update nightmill.result set effective = false, revoked_at = clock_timestamp(),
    revision = greatest(result.revision, 1 + coalesce((select max(earlier.revision) from nightmill.result as earlier
        where earlier.key = result.key and not earlier.effective), 0))
from revoked
where result.result_id = revoked.result_id and result.effective
