"""Which parts of a view are merged, which ones a rollback still needs, and where the rows of an older publication
lie now. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import groupby

from nightmill.domain.parts import Part

MERGE_ABOVE = 12  # parts that a view shows: more are merged as far as they can be
PARTS_AFTER = 8  # so many merged parts, about
LEAST_ROWS = 125_000  # of a merged part: fewer are not worth a part of their own, and copying them takes a second

Contents = Mapping[int, frozenset[int]]


def groups(listed: Sequence[Part], kept: Iterable[Sequence[Part]]) -> list[list[int]]:
    """Numbers of parts that become one, group by group: neighbours in time which every kept publication shows alike."""
    by_part = groupby(sorted(listed, key=lambda one: one.part_id), key=lambda one: one.part_id)
    units = sorted((_Unit(part_id, list(parts)) for part_id, parts in by_part), key=lambda one: one.start)
    if len(units) <= MERGE_ABOVE:
        return []
    most = max(LEAST_ROWS, sum(one.rows for one in units) // PARTS_AFTER)
    alike = [{one.batch_id for one in publication} for publication in kept]
    found: list[list[_Unit]] = [[]]
    for one in units:
        if not all(one.batch_ids <= batch_ids for batch_ids in alike):
            found.append([])
        elif sum(other.rows for other in found[-1]) + one.rows > most:
            found.append([one])
        else:
            found[-1].append(one)
    return [[one.part_id for one in group] for group in found if len(group) > 1]


class _Unit:
    """A part and the intervals in it."""

    def __init__(self, part_id: int, parts: Sequence[Part]) -> None:
        self.part_id = part_id
        self.start = min(one.interval_start or one.frozen_at for one in parts)
        self.batch_ids = {one.batch_id for one in parts}
        self.rows = sum(one.counts.get("accepted", 0) + one.counts.get("reused", 0) for one in parts)


def lies_in(wanted: Set[int], contents: Contents) -> dict[int, int] | None:
    """The part that holds each of these batches, the largest ones first, none with rows of another batch; None where
    rows are gone. `contents` are the batches in each part that exists."""
    found: dict[int, int] = {}
    for part_id, batch_ids in sorted(contents.items(), key=lambda one: (-len(one[1]), one[0])):
        if batch_ids <= wanted and batch_ids.isdisjoint(found):
            found |= dict.fromkeys(batch_ids, part_id)
    return None if wanted - found.keys() else found


def where_now(listed: Sequence[Part], contents: Contents) -> list[Part] | None:
    """A publication's list in the parts that exist; None where rows of it are gone."""
    found = lies_in({one.batch_id for one in listed}, contents)
    return None if found is None else [replace(one, part_id=found[one.batch_id]) for one in listed]


def needed(shown: Sequence[Part], kept: Iterable[Sequence[Part]], contents: Contents) -> set[int]:
    """The parts that the view shows, and those of which each kept publication can be shown again."""
    found = {one.part_id for one in shown}
    for publication in kept:
        again = where_now(publication, contents)
        found |= {one.part_id for one in (publication if again is None else again)}
    return found
