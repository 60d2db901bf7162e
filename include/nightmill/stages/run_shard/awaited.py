"""What an ended provider batch still owes. Providers do not update a batch, its counts and its files at one moment, so
nothing is asked for again before a grace has passed since its end was first seen.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from nightmill.domain.errors import Blocked
from nightmill.domain.wording import counted
from nightmill.jobs.rules.breaker import Verdict
from nightmill.stages.run_shard.context import ShardContext
from nightmill.stages.run_shard.poll import LATE, is_late
from nightmill.storage import breakers, fence
from nightmill.storage.breakers import Kind
from nightmill.storage.provider_batches import ProviderBatch


def until(context: ShardContext, one: ProviderBatch) -> datetime:
    """The end of its grace."""
    since = one.over_at or one.ended_at or one.intent_at
    return since + timedelta(seconds=context.live.provider.results_grace_s)


def told(one: ProviderBatch, missing: int) -> str:
    """What its files, its counts and what was sent say of each other, with all numbers; empty where they agree."""
    total = one.requests_total
    if not missing and total in (None, one.requests):
        return ""
    counted_there = f"the provider counts {one.finished:,} of {total:,} finished" if total is not None else "no counts"
    return f"{one.requests:,} requests sent, {one.requests - missing:,} answered by its files, {counted_there}"


def may_come(context: ShardContext, one: ProviderBatch, missing: int, waits_until: datetime) -> bool:
    """Whether the missing answers are waited for; `context` then says when to look again.

    Raises Blocked where paid answers lie in a file that is never named: asking for them again is a person's decision.
    """
    now = context.env.now()
    if _owes_none(one, missing):
        return False
    if now < waits_until:
        since = one.over_at or now
        pause_s = max(context.live.provider.poll_interval_s, (now - since).total_seconds())
        context.look_again_in(min(pause_s, (waits_until - now).total_seconds() + 1))
        context.note(f"what is missing is waited for until {waits_until:%H:%M:%S} UTC, and not asked for again before")
        context.send_nothing = context.send_nothing or one.stopped_by_hand
        return True
    answered, late = one.requests_answered or 0, one.submitted_at is None or is_late(one, now)
    if not one.names_answers and answered and not late:
        context.look_again_in(context.live.provider.poll_interval_s)
        raise Blocked(
            f"Provider batch {one.provider_batch_id} ({one.provider_id}) ended with {counted(answered, 'answer')}, "
            "which are paid for, and names no results that hold them.",
            f"Ask the provider for the results, then clear this task; {LATE} after its window, its requests count "
            "as lost and clearing this task sends them again.",
        )
    return False


def _owes_none(one: ProviderBatch, missing: int) -> bool:
    """A batch that was stopped or ran out of time may leave out what it did not execute, where its counts and its files
    agree on the rest. Before it has either, it says nothing."""
    agree = one.requests_total == one.requests and 0 < one.finished <= one.requests - missing
    return one.stopped is not None and bool(one.result_refs) and agree


def ask_if_stopped_by_hand(context: ShardContext, one: ProviderBatch) -> None:
    """Somebody cancelled it at the provider: a person meant it, so the rest is not sent before a person says so. In the
    caller's transaction."""
    if context.winding_down or not one.stopped_by_hand:
        return
    fence.enter(context.conn, context.holder)
    breakers.put(
        context.conn,
        one.batch_id,
        Kind.CANCELLED,
        Verdict.OPEN,
        f"Somebody cancelled provider batch {one.provider_batch_id} ({one.provider_id}) at the provider: what it had "
        "finished is collected, and its other requests are not sent again before you say so.",
        "Ask who stopped it and why. Clear this task to send the rest; to stop for good, `python -m nightmill cancel "
        f"--batch {one.batch_id}`.",
    )
