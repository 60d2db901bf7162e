"""How long a provider batch may stay in each of its states, and what happens then."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from nightmill.domain.snapshots import BatchStatus, Stopped
from nightmill.domain.states import ProviderBatchState

NO_WINDOW = timedelta(hours=24)  # after the create call, where the provider never ends a batch by itself
SLACK = timedelta(hours=6)
SHARD_OVERDUE = timedelta(hours=1)  # a waiting shard is woken within seconds of its time
SHARD_STALLED = timedelta(hours=24)  # without room at the provider, or without answers that others are getting


class Remedy(StrEnum):
    """What ends the wait."""

    STOP = "stop"  # ask the provider to cancel it: what is finished is collected, the rest is sent again
    ASK = "ask"  # only a person can help


@dataclass(frozen=True, slots=True)
class Overdue:
    """A provider batch past its deadline."""

    remedy: Remedy
    why: str


_OURS = {
    ProviderBatchState.INTENT: (SLACK, "no worker has sent its file"),
    ProviderBatchState.CREATING: (SLACK, "it is still not known whether the provider took it"),
    ProviderBatchState.ENDED: (SLACK, "no worker has collected its results"),
}


@dataclass(frozen=True, slots=True)
class InState:
    """Where a live provider batch stands. `since` is when it entered its state (for SUBMITTED: when it was sent,
    whatever status it has had there); `window_ends_at` is None where the provider never ends it by itself."""

    state: ProviderBatchState
    since: datetime
    raw_status: str | None = None
    status: BatchStatus | None = None
    stopped: Stopped | None = None
    window_ends_at: datetime | None = None


def overdue(one: InState, now: datetime) -> Overdue | None:
    """Whether a live provider batch is past the deadline of its state."""
    if one.state in _OURS:
        allowed, why = _OURS[one.state]
        span = _hours(now - one.since)
        return Overdue(Remedy.ASK, f"{one.state} for {span}: {why}") if now > one.since + allowed else None
    if one.state is not ProviderBatchState.SUBMITTED:
        return None
    until, remedy = (one.window_ends_at or one.since + NO_WINDOW) + SLACK, Remedy.STOP
    if one.status is BatchStatus.WAITING:  # nothing is executed so far, and should be within hours
        until = one.since + SLACK
    elif one.stopped is Stopped.CANCELLED:  # it may have been asked to stop at the end of its window only
        until, remedy = until + SLACK, Remedy.ASK
    if now <= until:
        return None
    return Overdue(remedy, f"still {one.raw_status or 'without a status'} {_hours(now - one.since)} after it was sent")


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:.0f} h"
