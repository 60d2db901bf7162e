"""How far a batch is, from counts that cost the ledger little: its shards and provider batches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from nightmill.domain.states import ProviderBatchState, ShardState
from nightmill.domain.wording import duration, pluralised

_ASKED = frozenset({ProviderBatchState.INTENT, ProviderBatchState.CREATING, ProviderBatchState.SUBMITTED})
_CARRIED = _ASKED | {ProviderBatchState.ENDED}
LATE = timedelta(minutes=2)  # between the time at which a shard is due and its task's first step
_AT_PROVIDER = frozenset({ProviderBatchState.SUBMITTED, ProviderBatchState.ENDED})


@dataclass(frozen=True, slots=True)
class ShardCount:
    """The shards of a batch in one state; items as planned. `unsettled` of them had no outcome when their shards last
    looked (all of them before), None where nobody asked; `failed` tasks ended with a fault since; the first one looks
    again by `wake_at`."""

    state: str
    shards: int
    items: int
    unsettled: int | None = None
    failed: int = 0
    wake_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ProviderBatchCount:
    """The provider batches in one state of ours and one status of the provider's. `answered` is of `requests`, as the
    provider said at the last look; `failed` of these have no answer. `reason` is the newest one's."""

    state: str
    raw_status: str | None
    batches: int
    requests: int
    answered: int
    failed: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Attempts:
    """Attempts of one failure class, None = accepted. `again` of them were no first ones; `rounds` is how often one of
    their items was asked at most."""

    kind: str | None
    attempts: int
    again: int
    rounds: int


@dataclass(frozen=True, slots=True)
class Progress:
    """`began` is the first intent to send anything, None before it. `attempts` are left out where nobody asks."""

    shards: tuple[ShardCount, ...]
    provider_batches: tuple[ProviderBatchCount, ...]
    began: datetime | None
    attempts: tuple[Attempts, ...] = ()

    @property
    def to_send(self) -> int:
        """Items that need a call, as planned."""
        return sum(one.items for one in self.shards)

    @property
    def unsettled(self) -> int | None:
        """Items without an outcome, as the shards last saw it; None where nobody asked."""
        seen = [one.unsettled for one in self.shards]
        return None if None in seen else sum(one or 0 for one in seen)

    @property
    def answered(self) -> int:
        """Items that were answered; an upper bound where nobody asked the shards, because an item that is to be asked
        again was answered too."""
        if self.unsettled is not None:
            return self.answered_of(self.unsettled)
        given = sum(one.answered for one in self.provider_batches if one.state != ProviderBatchState.ABANDONED)
        asked = sum(one.requests - one.answered for one in self.provider_batches if one.state in _ASKED)
        return max(0, min(self.to_send - asked, max(given, self._items_of_settled_shards)))

    @property
    def _items_of_settled_shards(self) -> int:
        return sum(one.items for one in self.shards if one.state == ShardState.SETTLED)

    def answered_of(self, unsettled: int) -> int:
        """The same, exactly, where the number of unsettled items is known: what is not collected yet counts too."""
        waiting = sum(one.answered - one.failed for one in self.provider_batches if one.state in _AT_PROVIDER)
        return min(self.to_send, max(0, self.to_send - unsettled) + waiting)

    def unsent(self, unsettled: int) -> int:
        """Items that no provider batch carries now."""
        return max(0, unsettled - sum(one.requests for one in self.provider_batches if one.state in _CARRIED))


def seconds_left(progress: Progress, answered: int, now: datetime) -> float | None:
    """When the rest will be answered at the pace so far; None before the first answer, 0 at the end."""
    left = progress.to_send - answered
    if left <= 0:
        return 0.0
    if answered <= 0 or progress.began is None:
        return None
    return max(0.0, (now - progress.began).total_seconds()) / answered * left


def one_line(progress: Progress, now: datetime, unsettled: int | None = None, *, to_go: bool = True) -> str:
    """`3 of 8 shards settled; 410 of 1,000 items answered; 2 provider batches in_progress; about 12 min to go; 55 to be
    sent`. Exact where the number of unsettled items is given, or was asked of the shards. `to_go`: with the time left,
    which differs at each look."""
    total = sum(one.shards for one in progress.shards)
    if not total:
        return "no shards: nothing has to be sent"
    settled = sum(one.shards for one in progress.shards if one.state == ShardState.SETTLED)
    unsettled = progress.unsettled if unsettled is None else unsettled
    answered = progress.answered if unsettled is None else progress.answered_of(unsettled)
    parts = [
        f"{settled} of {pluralised(total, 'shard')} settled",
        f"{answered:,} of {pluralised(progress.to_send, 'item')} answered",
    ]
    parts += [
        f"{pluralised(one.batches, 'provider batch')} {one.raw_status or one.state.lower()}"
        for one in progress.provider_batches
        if one.state not in (ProviderBatchState.COLLECTED, ProviderBatchState.ABANDONED)
    ]
    left = seconds_left(progress, answered, now)
    if settled < total and left is not None and (to_go or not left):
        parts.append(f"about {duration(left)} to go" if left else "everything is answered")
    if unsettled is not None and progress.unsent(unsettled):
        parts.append(f"{progress.unsent(unsettled):,} to be sent")
    return "; ".join(parts)


def repeats(progress: Progress) -> str:
    """`55 requests sent again, round 2; 55 failed as transient, 3 as output`; empty where nothing was repeated or
    failed."""
    again = sum(one.again for one in progress.attempts)
    rounds = max((one.rounds for one in progress.attempts), default=0)
    parts = [f"{pluralised(again, 'request')} sent again, round {rounds}"] if again else []
    failed = [f"{one.attempts:,} as {one.kind}" for one in progress.attempts if one.kind is not None]
    return "; ".join(parts + ([f"failed: {', '.join(failed)}"] if failed else []))


def refusals(progress: Progress) -> str:
    """`2 provider batches given up (create refused: token_limit_exceeded)`, the newest reason; empty for none."""
    given_up = [one for one in progress.provider_batches if one.state == ProviderBatchState.ABANDONED]
    batches = sum(one.batches for one in given_up)
    return f"{pluralised(batches, 'provider batch')} given up ({given_up[-1].reason})" if batches else ""


def waiting(progress: Progress, now: datetime) -> str:
    """What tells a wait from a hang: when the next shard looks again, and whose tasks have failed."""
    failed = sum(one.failed for one in progress.shards)
    parts = [f"the task of {pluralised(failed, 'shard')} failed"] if failed else []
    due = min((one.wake_at for one in progress.shards if one.wake_at is not None), default=None)
    if due is not None and due > now:
        parts.append(f"looks again by {due:%H:%M:%S} UTC")
    elif due is not None and now - due > LATE:
        parts.append(f"was due at {due:%H:%M:%S} UTC, and no task has looked since")
    return "; ".join(parts)
