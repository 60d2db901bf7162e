"""Parts: what a publication lists, and which of them a batch takes the place of where a view shows every interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from nightmill.domain.errors import Blocked, Terminal


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that a publication shows: those of one batch, in a part that bears its number or in a merged one, whose
    numbers are negative. `shown_since` is None for what no publication has shown yet."""

    part_id: int
    batch_id: int
    interval_start: datetime | None
    interval_end: datetime | None
    frozen_at: datetime
    counts: dict[str, int]
    gaps: int
    shown_since: datetime | None = None

    @property
    def interval(self) -> tuple[datetime | None, datetime | None]:
        """Its start and end."""
        return self.interval_start, self.interval_end

    @property
    def has_interval(self) -> bool:
        """Whether it can be one of several: it has both ends, and something lies between them."""
        start, end = self.interval
        return start is not None and end is not None and start < end

    def lies_within(self, start: datetime | None, end: datetime | None) -> bool:
        """Whether its interval is this one, or a stretch of it."""
        if None in (start, end, *self.interval):
            return False
        assert start and end and self.interval_start and self.interval_end
        return start <= self.interval_start and self.interval_end <= end

    def overlaps(self, other: Part) -> bool:
        """Whether some moment lies in both."""
        (start, end), (other_start, other_end) = self.interval, other.interval
        assert start and end and other_start and other_end
        return start < other_end and other_start < end

    def covers(self, other: Part) -> bool:
        """Whether the other's interval lies in this one's."""
        (start, end), (other_start, other_end) = self.interval, other.interval
        assert start and end and other_start and other_end
        return start <= other_start and other_end <= end


def kept_beside(
    mine: Part,
    shown: Sequence[Part],
    view: str,
    *,
    replace_intervals: bool,
    rewritten: Mapping[int, int] = MappingProxyType({}),
) -> list[Part]:
    """What the view goes on showing when it shows this part: all but what it takes the place of. That is its own
    interval; with `replace_intervals` also whole intervals that it covers. `rewritten` tells which merged parts
    were written anew without what it replaces, and as which.

    Raises Terminal where something newer is shown, or an interval that overlaps this one; Blocked where this interval
    was merged with others.
    """
    replaced = [one for one in shown if mine.overlaps(one)]
    others = [one for one in replaced if one.interval != mine.interval]
    if others and not (replace_intervals and all(mine.covers(one) for one in others)):
        raise _overlap(mine, others, view)
    newer = next((one for one in replaced if one.frozen_at > mine.frozen_at), None)
    if newer is not None:
        raise Terminal(
            f"results.{view} shows a newer run of this interval: batch {newer.batch_id} of {_words(newer)}, frozen at "
            f"{newer.frozen_at:%Y-%m-%d %H:%M} UTC, after batch {mine.batch_id}.",
            "Nothing: readers see the newer result, and the answers of this batch are kept for reuse.",
        )
    kept = [one for one in shown if one not in replaced]
    merged = {one.part_id for one in kept} & {one.part_id for one in replaced}
    if merged - rewritten.keys():
        raise Blocked(
            f"The interval {_words(mine)} of results.{view} was merged with others into part {min(merged)}.",
            "Clear publish: it rewrites that part first.",
        )
    return [replace(one, part_id=rewritten.get(one.part_id, one.part_id)) for one in kept]


def _overlap(mine: Part, others: Sequence[Part], view: str) -> Terminal:
    listed = ", ".join(f"{_words(one)} (batch {one.batch_id})" for one in others[:3])
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    cause = f"The interval {_words(mine)} of batch {mine.batch_id} overlaps what results.{view} shows: {listed}{more}."
    if all(mine.covers(one) for one in others):
        remedy = "To replace these intervals, trigger a run with replace_intervals = true. Or give the run one of them."
    else:
        remedy = "Trigger a run for one of these intervals, or for one that covers each of them wholly, with "
        remedy += "replace_intervals = true."
    return Terminal(cause, remedy)


def _words(part: Part) -> str:
    return f"{part.interval_start:%Y-%m-%d %H:%M} to {part.interval_end:%Y-%m-%d %H:%M} UTC"
