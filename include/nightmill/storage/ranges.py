"""Sets of ordinals as Postgres keeps them."""

from __future__ import annotations

from collections.abc import Iterable

from psycopg.types.multirange import Int8Multirange
from psycopg.types.range import Int8Range


def multirange(ordinals: Iterable[int], bridged: int = 0) -> Int8Multirange:
    """Ascending ordinals as the fewest half-open ranges that hold no more than `bridged` others in a row."""
    ranges: list[Int8Range] = []
    start = previous = None
    for ordinal in ordinals:
        if previous is not None and start is not None and ordinal > previous + 1 + bridged:
            ranges.append(Int8Range(start, previous + 1))
            start = ordinal
        elif start is None:
            start = ordinal
        previous = ordinal
    if start is not None and previous is not None:
        ranges.append(Int8Range(start, previous + 1))
    return Int8Multirange(ranges)
