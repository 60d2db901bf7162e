"""How long a provider batch may stay in each of its states, and what happens then."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from nightmill.domain.states import ProviderBatchState

WINDOW = timedelta(hours=24)  # of the Batch API: https://platform.openai.com/docs/guides/batch
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


# Statuses in which the provider executes nothing and should go on within hours.
_SHORT = {"validating": (SLACK, Remedy.STOP), "cancelling": (SLACK, Remedy.ASK)}
_OURS = {
    ProviderBatchState.INTENT: (SLACK, "no worker has sent its file"),
    ProviderBatchState.UPLOADED: (SLACK, "it is still not known whether the provider took it"),
    ProviderBatchState.ENDED: (SLACK, "no worker has collected its results"),
}


def overdue(state: ProviderBatchState, raw_status: str | None, since: datetime, now: datetime) -> Overdue | None:
    """Whether a live provider batch is past the deadline of its state. `since` is when it entered that state (for
    SUBMITTED: when it was sent, whatever status it has had there)."""
    if state in _OURS:
        allowed, why = _OURS[state]
        return Overdue(Remedy.ASK, f"{state} for {_hours(now - since)}: {why}") if now > since + allowed else None
    if state is not ProviderBatchState.SUBMITTED:
        return None
    allowed, remedy = _SHORT.get((raw_status or "").casefold(), (WINDOW + SLACK, Remedy.STOP))
    if raw_status is not None and raw_status.casefold() == "cancelling":
        allowed += WINDOW + SLACK  # it may have been asked at the end of its window only
    if now <= since + allowed:
        return None
    return Overdue(remedy, f"still {raw_status or 'without a status'} {_hours(now - since)} after it was sent")


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:.0f} h"
