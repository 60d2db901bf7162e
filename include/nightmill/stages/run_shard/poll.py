"""Asking the provider how one batch stands, and what follows from what it says."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from nightmill.domain.deadlines import NO_WINDOW
from nightmill.domain.errors import Blocked, ProviderRefused, ProviderUnavailable
from nightmill.domain.failures import Seen, classify
from nightmill.domain.snapshots import BatchStatus, Snapshot
from nightmill.domain.states import BatchState, ProviderBatchState
from nightmill.domain.wording import counted
from nightmill.providers.port import Handle
from nightmill.stages.run_shard import refused, throttle
from nightmill.stages.run_shard.context import ShardContext
from nightmill.storage import batches, provider_batches
from nightmill.storage.provider_batches import ProviderBatch

log = logging.getLogger(__name__)

_NOT_KNOWN = ", which nightmill does not know,"  # in a batch's reason while it waits for such a status
SLOWEST_POLL_S = 900.0  # of a status that nobody knows; the trigger does not watch it meanwhile
LATE = timedelta(hours=24)  # after its window


def known(context: ShardContext, one: ProviderBatch, there: Handle | Snapshot, *, adopted: bool) -> ProviderBatch:
    """Note that the provider has it, and under which id."""
    done = provider_batches.move(
        context.conn,
        context.holder,
        one,
        ProviderBatchState.SUBMITTED,
        "adopted" if adopted else "created",
        provider_id=there.provider_id,
        adopted=adopted,
        raw_status=there.raw_status,
        window_ends_at=there.window_ends_at,
        results_until=there.results_until,
    )
    context.conn.commit()
    how = "adopted" if adopted else "sent"
    context.note(
        f"provider batch {one.provider_batch_id}: {how} {counted(one.requests, 'request')} as {there.provider_id}"
    )
    context.look_again_in(context.live.provider.poll_interval_s * 20)
    return done


def submitted(context: ShardContext, one: ProviderBatch) -> ProviderBatch:
    """Take the next step of a batch that the provider has."""
    assert one.provider_id is not None
    snapshot = context.transport.poll(one.provider_id)
    before, one = one, _noted(context, one, snapshot)
    context.note(f"provider batch {one.provider_batch_id}: {_progress(snapshot)}")
    if classify(Seen(batch_status=snapshot.status)) is not None:
        return _unknown(context, one, snapshot)
    if before.unknown_since is not None:
        _known_again(context, before)
    if snapshot.status is BatchStatus.FAILED:
        return refused.as_a_whole(context, one, snapshot.complaints)
    if before.taken_at is None and one.taken_at is not None:
        throttle.taken(context, one)
    if snapshot.status is BatchStatus.ENDED:
        return _ended(context, one)
    refuse_overdue(context, one)
    if one.stopped_by_hand and not context.winding_down:
        context.send_nothing = True  # what becomes of the rest is asked once it has ended
    tried = one.taken_at is None and throttle.is_probe(context, one)
    context.look_again_in(context.live.provider.poll_interval_s * (2 if tried else 20))
    return one


def again(context: ShardContext, one: ProviderBatch) -> ProviderBatch:
    """Look once more at a batch that has ended: its counts and the names of its files can come later. What is known
    already is taken where it cannot be asked."""
    assert one.provider_id is not None
    try:
        return _noted(context, one, context.transport.poll(one.provider_id))
    except (ProviderUnavailable, ProviderRefused) as fault:
        asked_to_wait = isinstance(fault, ProviderUnavailable) and fault.retry_after_s
        if asked_to_wait or not one.result_refs:
            raise
        return one


def refuse_overdue(context: ShardContext, one: ProviderBatch) -> None:
    """Raises Blocked where it should have ended long ago. A cancelled batch is followed on."""
    if context.winding_down:
        return
    if is_late(one, context.env.now()):
        raise Blocked(
            f"Provider batch {one.provider_batch_id} ({one.provider_id}) has not ended {LATE} after its window.",
            "Ask the provider, or cancel the batch there: what it finished is collected. Clear this task to wait on.",
        )


def is_late(one: ProviderBatch, now: datetime) -> bool:
    """Whether it should have ended long ago."""
    sent_at = one.submitted_at
    return sent_at is not None and now > (one.window_ends_at or sent_at + NO_WINDOW) + LATE


def _noted(context: ShardContext, one: ProviderBatch, seen: Snapshot) -> ProviderBatch:
    noted = provider_batches.record_poll(context.conn, context.holder, one, seen, context.env.now())
    context.conn.commit()
    return noted


def _progress(snapshot: Snapshot) -> str:
    total = "?" if snapshot.requests_total is None else snapshot.requests_total
    return f"{snapshot.raw_status} {snapshot.requests_done or 0}/{total}"


def _unknown(context: ShardContext, one: ProviderBatch, snapshot: Snapshot) -> ProviderBatch:
    """Nothing more is sent while nobody knows what the status means. After the declared time a person is asked; it is
    polled all the same, so that it goes on by itself once the status is known again."""
    context.send_nothing = True
    now, since = context.env.now(), one.unknown_since or context.env.now()
    until = since + timedelta(seconds=context.live.provider.unknown_status_s)
    if now < until:
        context.note(f"nobody knows this status: it is polled until {until:%Y-%m-%d %H:%M} UTC, nothing more is sent")
        context.wake_times.append(until)
    else:
        _ask(context, one, f"{snapshot.raw_status!r} for batch {one.provider_id}", since)
        context.note("nobody knows this status: a person is asked, and it is polled on")
    refuse_overdue(context, one)
    pause_s = max(context.live.provider.poll_interval_s * 4, (now - since).total_seconds() / 4)
    context.look_again_in(min(pause_s, SLOWEST_POLL_S))
    return one


def _ask(context: ShardContext, one: ProviderBatch, what: str, since: datetime) -> None:
    """Block the batch, once, without ending the task that polls."""
    cause = f"The provider reports the status {what}{_NOT_KNOWN} since {since:%Y-%m-%d %H:%M} UTC."
    batch = batches.get(context.conn, one.batch_id)
    if batch.state is BatchState.RUNNING:
        shard = f"shard {context.shard.shard_id}"
        batches.move(context.conn, batch, BatchState.BLOCKED, cause, blocked_by=shard)
        log.warning("ALERT: batch %s is BLOCKED: %s Look at it there; it goes on by itself", batch.batch_id, cause)
    context.conn.commit()


def _known_again(context: ShardContext, before: ProviderBatch) -> None:
    """A status that had blocked the batch is known again: nothing else needs to be asked."""
    batch = batches.get(context.conn, before.batch_id)
    if batch.state is BatchState.BLOCKED and batch.blocked_from and _NOT_KNOWN in batch.state_reason:
        batches.move(context.conn, batch, BatchState(batch.blocked_from), "the provider's status is known again")
    context.conn.commit()


def _ended(context: ShardContext, one: ProviderBatch) -> ProviderBatch:
    ended = provider_batches.move(
        context.conn, context.holder, one, ProviderBatchState.ENDED, f"the provider says {one.raw_status}"
    )
    context.conn.commit()
    return ended
