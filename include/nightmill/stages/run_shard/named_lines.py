"""Which requests a provider means by the complaints about a refused file.

A record id is believed, whether it stands beside a complaint or in its message. A line number is not: some providers
count from 1 and some from 0. What it can mean is tested in files of its own before anything is given up, unless all
lines of a file are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nightmill.domain.failures import Failure
from nightmill.domain.snapshots import Complaint
from nightmill.stages.run_shard.record_ids import in_text
from nightmill.storage.provider_batches import ProviderBatch

Judged = tuple[Complaint, Failure]


@dataclass(frozen=True, slots=True)
class Named:
    """`bad` are items that are surely meant, with what is wrong with them. `suspects` are groups of items, of which one
    is meant: each group goes into a file of its own."""

    bad: Mapping[int, Failure]
    suspects: Sequence[Sequence[int]]


def named_by(complaints: Iterable[Judged], one: ProviderBatch) -> Named:
    """What the complaints about a file name; nothing where they name no line of it."""
    carried = list(one.carries())
    known = set(carried)
    bad: dict[int, Failure] = {}
    by_line: dict[int, Failure] = {}
    for problem, failure in complaints:
        ids = [ordinal for ordinal in in_text(one.token, f"{problem.record_id} {problem.message}") if ordinal in known]
        for ordinal in ids:
            bad.setdefault(ordinal, failure)
        if not ids and problem.line is not None and 0 <= problem.line <= len(carried):
            by_line.setdefault(problem.line, failure)
    if len(by_line) >= len(carried):  # all of them, from whatever number they are counted
        return Named(bad | dict(zip(carried, by_line.values(), strict=False)), ())
    return Named(bad, _groups(by_line, carried, bad))


def _groups(lines: Iterable[int], carried: Sequence[int], bad: Mapping[int, Failure]) -> list[list[int]]:
    """The items that the numbers mean, counted from 1 and counted from 0, where they can be counted so."""
    numbers = sorted(lines)
    if not numbers:
        return []
    from_one = [carried[number - 1] for number in numbers] if numbers[0] > 0 else []
    from_zero = [carried[number] for number in numbers] if numbers[-1] < len(carried) else []
    first = [ordinal for ordinal in from_one if ordinal not in bad]
    second = [ordinal for ordinal in from_zero if ordinal not in bad and ordinal not in from_one]
    return [group for group in (first, second) if group]
