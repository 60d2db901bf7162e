"""Which parts show a set of batches: those shown now, those of an earlier publication, or some of both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Protocol, TypeVar


class InPart(Protocol):
    """A batch whose rows lie in a part; a merged part has several."""

    @property
    def part_id(self) -> int: ...

    @property
    def batch_id(self) -> int: ...


_T = TypeVar("_T", bound=InPart)


def parts_for(wanted: Collection[int], preferred: Sequence[_T], others: Sequence[_T]) -> list[_T] | None:
    """Parts that together hold the rows of these batches and of no other one; None where merging or retention left
    none such."""
    return _cover(wanted, [*preferred, *others]) or _cover(wanted, [*others, *preferred]) or (None if wanted else [])


def _cover(wanted: Collection[int], pool: Sequence[_T]) -> list[_T] | None:
    batches: dict[int, dict[int, _T]] = defaultdict(dict)
    for one in pool:
        batches[one.part_id].setdefault(one.batch_id, one)
    left, found = set(wanted), list[_T]()
    for listed in batches.values():
        if listed.keys() <= left:
            left -= listed.keys()
            found += listed.values()
    return None if left else found
