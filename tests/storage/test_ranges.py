"""Ordinals as ranges: nothing is lost, and nothing more is held than was asked for."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nightmill.storage.ranges import multirange


def held(ordinals: list[int], bridged: int = 0) -> list[tuple[int, int]]:
    return [(part.lower or 0, part.upper or 0) for part in multirange(ordinals, bridged)]


@given(st.sets(st.integers(0, 60), min_size=1).map(sorted), st.integers(0, 5))
def test_ranges_hold_every_ordinal_and_only_gaps_that_they_may_bridge(ordinals: list[int], bridged: int) -> None:
    gaps = [(one + 1, after) for one, after in pairwise(ordinals) if after - one - 1 > bridged]
    bounds = [ordinals[0], *(bound for gap in gaps for bound in gap), ordinals[-1] + 1]
    assert held(ordinals, bridged) == list(zip(bounds[::2], bounds[1::2], strict=True))


def test_without_a_bridge_only_neighbours_share_a_range() -> None:
    assert held([0, 1, 2, 5, 7, 8]) == [(0, 3), (5, 6), (7, 9)]
    assert held([]) == []
