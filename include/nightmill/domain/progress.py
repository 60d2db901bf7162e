"""How far a batch is, from counts that cost the ledger little: its shards and provider batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from nightmill.domain.states import ProviderBatchState, ShardState
from nightmill.domain.wording import counted, duration

_ASKED = frozenset({ProviderBatchState.INTENT, ProviderBatchState.UPLOADED, ProviderBatchState.SUBMITTED})
_AT_PROVIDER = frozenset({ProviderBatchState.SUBMITTED, ProviderBatchState.ENDED})


def requests_done(counts: Mapping[str, int]) -> int:
    """Requests of a provider batch that the provider has finished, well or not, by its own counts."""
    return counts.get("completed", 0) + counts.get("failed", 0)


@dataclass(frozen=True, slots=True)
class ShardCount:
    """The shards of a batch in one state; items as planned."""

    state: str
    shards: int
    items: int


@dataclass(frozen=True, slots=True)
class ProviderBatchCount:
    """The provider batches in one state of ours and one status of the provider's. `answered` is of `requests`, as the
    provider said at the last look."""

    state: str
    raw_status: str | None
    batches: int
    requests: int
    answered: int


@dataclass(frozen=True, slots=True)
class Progress:
    """`began` is the first intent to send anything, None before it."""

    shards: tuple[ShardCount, ...]
    provider_batches: tuple[ProviderBatchCount, ...]
    began: datetime | None

    @property
    def to_send(self) -> int:
        """Items that need a call, as planned."""
        return sum(one.items for one in self.shards)

    @property
    def answered(self) -> int:
        """Items that were answered: an upper bound, because an item that is to be asked again was answered too."""
        given = sum(one.answered for one in self.provider_batches if one.state != ProviderBatchState.ABANDONED)
        asked = sum(one.requests - one.answered for one in self.provider_batches if one.state in _ASKED)
        return max(0, min(self.to_send - asked, max(given, self._items_of_settled_shards)))

    @property
    def _items_of_settled_shards(self) -> int:
        return sum(one.items for one in self.shards if one.state == ShardState.SETTLED)

    def answered_of(self, unsettled: int) -> int:
        """The same, exactly, where the number of unsettled items is known: what is not collected yet counts too."""
        waiting = sum(one.answered for one in self.provider_batches if one.state in _AT_PROVIDER)
        return min(self.to_send, max(0, self.to_send - unsettled) + waiting)


def seconds_left(progress: Progress, answered: int, now: datetime) -> float | None:
    """When the rest will be answered at the pace so far; None before the first answer, 0 at the end."""
    left = progress.to_send - answered
    if left <= 0:
        return 0.0
    if answered <= 0 or progress.began is None:
        return None
    return max(0.0, (now - progress.began).total_seconds()) / answered * left


def one_line(progress: Progress, now: datetime, unsettled: int | None = None) -> str:
    """`3 of 8 shards settled; 410 of 1,000 items answered; 2 provider batches in_progress; about 12 min to go`. Exact
    where the number of unsettled items is given."""
    total = sum(one.shards for one in progress.shards)
    if not total:
        return "no shards: nothing has to be sent"
    settled = sum(one.shards for one in progress.shards if one.state == ShardState.SETTLED)
    answered = progress.answered if unsettled is None else progress.answered_of(unsettled)
    parts = [
        f"{settled} of {counted(total, 'shard')} settled",
        f"{answered:,} of {counted(progress.to_send, 'item')} answered",
    ]
    parts += [
        f"{counted(one.batches, 'provider batch')} {one.raw_status or one.state.lower()}"
        for one in progress.provider_batches
        if one.state not in (ProviderBatchState.COLLECTED, ProviderBatchState.ABANDONED)
    ]
    left = seconds_left(progress, answered, now)
    if settled < total and left is not None:
        parts.append(f"about {duration(left)} to go" if left else "everything is answered")
    return "; ".join(parts)
