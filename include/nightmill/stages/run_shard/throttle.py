"""What the account takes: while it refuses, one probe goes out at a time, for all its shards and runs, after growing
pauses; and what refusals teach is kept for all of them."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta

from nightmill.domain import limits
from nightmill.domain.limits import Dimensions, Limit, Standing
from nightmill.domain.states import ProviderBatchState
from nightmill.stages.run_shard.context import ShardContext
from nightmill.storage import account_limits, fence, provider_batches
from nightmill.storage.account_limits import Stuck
from nightmill.storage.provider_batches import ProviderBatch

log = logging.getLogger(__name__)

_WHY = {
    Limit.QUEUE: "no room in the account's queue at the provider",
    Limit.SIZE: "the file is larger than the provider takes",
    Limit.RATE: "the provider asks to slow down",
}


def standing(context: ShardContext) -> Standing:
    """What is known of the account and the job's model."""
    return account_limits.get(context.conn, context.account, context.pinned.job.provider.model)


def is_open(context: ShardContext) -> bool:
    """Whether a file may be made now. Says in the context why not, and when to look again."""
    known, now = standing(context), context.env.now()
    if not known.refusals:
        return True
    if known.next_at is not None and now < known.next_at:
        context.note(
            f"{_WHY[known.refused_as or Limit.QUEUE]}: the next probe goes out at {known.next_at:%H:%M:%S} UTC"
        )
        context.wake_times.append(known.next_at)
    elif (probe := account_limits.probing(context.conn, context.account)) is not None:
        context.note(f"{_WHY[known.refused_as or Limit.QUEUE]}: provider batch {probe} is the probe")
        context.look_again_in(context.live.provider.poll_interval_s * 2)
    else:
        return True
    return False


def admits(context: ShardContext, one: ProviderBatch) -> bool:
    """Whether this file may go out now; while the account refuses, it then is the probe. Holds the account's lock until
    the caller's transaction ends, so that there is one probe only."""
    fence.enter(context.conn, context.holder)
    provider_batches.lock_sending(context.conn, context.pinned.name, context.account)
    known = standing(context)
    if not known.refusals or known.probe == one.provider_batch_id:
        return True
    if not is_open(context):
        return False
    account_limits.put(context.conn, one.account, one.model, replace(known, probe=one.provider_batch_id))
    return True


def is_probe(context: ShardContext, one: ProviderBatch) -> bool:
    """Whether the account's other files wait for what becomes of this one."""
    known = account_limits.get(context.conn, one.account, one.model)
    context.conn.commit()
    return known.refusals > 0 and known.probe == one.provider_batch_id


def refused(
    context: ShardContext, one: ProviderBatch, limit: Limit, retry_after_s: float | None = None,
    found: Dimensions | None = None,
) -> ProviderBatch:  # fmt: skip
    """Give a file up that the account has no room for, or that is too large, and learn from it. `found` says in what it
    was too large. A file that left before the first refusal was seen teaches nothing more."""
    conn, now = context.conn, context.env.now()
    fence.enter(conn, context.holder)
    provider_batches.lock_sending(conn, context.pinned.name, one.account)
    known = account_limits.get(conn, one.account, one.model)
    after = known
    if found is not None:
        after = limits.too_large(after, found, file_bytes=one.file_bytes, requests=one.requests, now=now)
    if known.is_news(one.provider_batch_id):
        queued, newest = account_limits.under_way(conn, one.account, one.model, but=one.provider_batch_id)
        after = limits.refused(
            after, limit, file_tokens=one.prompt_tokens, taken_tokens=queued, now=now, newest=newest,
            pause_s=context.live.provider.poll_interval_s * 2,
        )  # fmt: skip
        if retry_after_s and after.next_at is not None:
            after = replace(after, next_at=max(after.next_at, now + timedelta(seconds=retry_after_s)))
    account_limits.put(conn, one.account, one.model, after)
    why = f"refused: {_WHY[limit]}"
    given_up = provider_batches.move(
        conn, context.holder, one, ProviderBatchState.ABANDONED, why,
        refused="size" if limit is Limit.SIZE else "capacity",
    )  # fmt: skip
    conn.commit()
    context.send_nothing = True
    context.note(f"provider batch {one.provider_batch_id}: {why}")
    context.wake_times.append(after.next_at or now)
    if after.is_stuck(now) and after.refused_since is not None:
        stuck = Stuck(one.account, one.model, after.refusals, str(after.refused_as), after.refused_since)
        log.warning("ALERT: %s", stuck)
    return given_up


def taken(context: ShardContext, one: ProviderBatch) -> None:
    """The provider took a file: if it was the probe, the others may follow."""
    conn = context.conn
    fence.enter(conn, context.holder)
    provider_batches.lock_sending(conn, context.pinned.name, one.account)
    known = account_limits.get(conn, one.account, one.model)
    if known != Standing():
        queued, _ = account_limits.under_way(conn, one.account, one.model)
        after = limits.taken(known, one.provider_batch_id, queued, context.env.now())
        if after != known:
            account_limits.put(conn, one.account, one.model, after)
            if known.refusals and not after.refusals:
                context.note(f"provider batch {one.provider_batch_id}: the probe was taken, the others follow")
    conn.commit()
