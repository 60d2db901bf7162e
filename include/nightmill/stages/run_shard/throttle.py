"""What the account takes: while it refuses, one probe goes out at a time, for all its shards and runs, after growing
pauses; and what refusals teach is kept for all of them."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta

from nightmill.domain import limits
from nightmill.domain.limits import Dimensions, Limit, Standing
from nightmill.stages.run_shard.wake_up import WakeUp
from nightmill.storage import account_limits, fence, provider_batches, sending
from nightmill.storage.account_limits import Stuck
from nightmill.storage.fence import writing
from nightmill.storage.provider_batches import ProviderBatch, Refusal
from nightmill.storage.session import reading

log = logging.getLogger(__name__)

_WHY = {
    Limit.QUEUE: "no room in the account's queue at the provider",
    Limit.SIZE: "the file is larger than the provider takes",
    Limit.RATE: "the provider asks to slow down",
}


def standing(wake_up: WakeUp) -> Standing:
    """What is known of the account and the job's model."""
    return account_limits.get(wake_up.conn, wake_up.account, wake_up.pinned.job.provider.model)


def is_open(wake_up: WakeUp) -> bool:
    """Whether a file may be made now. Says in the wake_up why not, and when to look again."""
    known, now = standing(wake_up), wake_up.env.now()
    if not known.refusals:
        return True
    if known.next_at is not None and now < known.next_at:
        wake_up.note(
            f"{_WHY[known.refused_as or Limit.QUEUE]}: the next probe goes out at {known.next_at:%H:%M:%S} UTC"
        )
        wake_up.wake_times.append(known.next_at)
    elif (probe := account_limits.probing(wake_up.conn, wake_up.account)) is not None:
        wake_up.note(f"{_WHY[known.refused_as or Limit.QUEUE]}: provider batch {probe} is the probe")
        wake_up.look_again_in(wake_up.live.provider.poll_interval_s * 2)
    else:
        return True
    return False


def admits(wake_up: WakeUp, one: ProviderBatch) -> bool:
    """Whether this file may go out now; while the account refuses, it then is the probe. Holds the account's lock until
    the caller's transaction ends, so that there is one probe only."""
    fence.enter(wake_up.conn, wake_up.holder)
    sending.lock_sending(wake_up.conn, wake_up.pinned.name, wake_up.account)
    known = standing(wake_up)
    if not known.refusals or known.probe == one.provider_batch_id:
        return True
    if not is_open(wake_up):
        return False
    account_limits.put(wake_up.conn, one.account, one.model, replace(known, probe=one.provider_batch_id))
    return True


def is_probe(wake_up: WakeUp, one: ProviderBatch) -> bool:
    """Whether the account's other files wait for what becomes of this one."""
    with reading(wake_up.conn):
        known = account_limits.get(wake_up.conn, one.account, one.model)
    return known.refusals > 0 and known.probe == one.provider_batch_id


def refused(
    wake_up: WakeUp, one: ProviderBatch, limit: Limit, retry_after_s: float | None = None,
    found: Dimensions | None = None,
) -> ProviderBatch:  # fmt: skip
    """Give a file up that the account has no room for, or that is too large, and learn from it. `found` says in what it
    was too large. A file that left before the first refusal was seen teaches nothing more."""
    conn, now, why = wake_up.conn, wake_up.env.now(), f"refused: {_WHY[limit]}"
    refusal = Refusal.SIZE if limit is Limit.SIZE else Refusal.CAPACITY
    with writing(conn, wake_up.holder):
        sending.lock_sending(conn, wake_up.pinned.name, one.account)
        after = _learnt(wake_up, one, limit, retry_after_s, found)
        account_limits.put(conn, one.account, one.model, after)
        given_up = provider_batches.abandoned(conn, wake_up.holder, one, why, refusal)
    wake_up.send_nothing = True
    wake_up.note(f"provider batch {one.provider_batch_id}: {why}")
    wake_up.wake_times.append(after.next_at or now)
    if after.is_stuck(now) and after.refused_since is not None:
        stuck = Stuck(one.account, one.model, after.refusals, str(after.refused_as), after.refused_since)
        log.warning("ALERT: %s", stuck)
    return given_up


def _learnt(
    wake_up: WakeUp, one: ProviderBatch, limit: Limit, retry_after_s: float | None, found: Dimensions | None
) -> Standing:
    """What is known of the account after the refusal. Holds its lock already."""
    conn, now = wake_up.conn, wake_up.env.now()
    known = after = account_limits.get(conn, one.account, one.model)
    if found is not None:
        after = limits.too_large(after, found, file_bytes=one.file_bytes, requests=one.requests, now=now)
    if known.is_news(one.provider_batch_id):
        queued, newest = account_limits.under_way(conn, one.account, one.model, but=one.provider_batch_id)
        after = limits.refused(
            after, limit, file_tokens=one.prompt_tokens, taken_tokens=queued, now=now, newest=newest,
            pause_s=wake_up.live.provider.poll_interval_s * 2,
        )  # fmt: skip
        if retry_after_s and after.next_at is not None:
            after = replace(after, next_at=max(after.next_at, now + timedelta(seconds=retry_after_s)))
    return after


def taken(wake_up: WakeUp, one: ProviderBatch) -> None:
    """The provider took a file: if it was the probe, the others may follow."""
    conn = wake_up.conn
    with writing(conn, wake_up.holder):
        sending.lock_sending(conn, wake_up.pinned.name, one.account)
        known = account_limits.get(conn, one.account, one.model)
        if known == Standing():
            return
        queued, _ = account_limits.under_way(conn, one.account, one.model)
        after = limits.taken(known, one.provider_batch_id, queued, wake_up.env.now())
        if after != known:
            account_limits.put(conn, one.account, one.model, after)
    if known.refusals and not after.refusals:
        wake_up.note(f"provider batch {one.provider_batch_id}: the probe was taken, the others follow")
