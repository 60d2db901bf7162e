"""Intervals hold what they were counted on, and are the textbook's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightmill.domain.intervals import for_each_of, mean, share

SHARES = st.integers(1, 10_000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of)))
SCORES = st.dictionaries(st.floats(-1, 1).map(lambda one: round(one, 2)), st.integers(1, 50), min_size=1, max_size=20)


@given(SHARES, st.floats(0.5, 0.9999))
def test_a_share_lies_in_its_interval_and_the_interval_between_0_and_1(counted: tuple[int, int], sure: float) -> None:
    seen = share(*counted, sure)
    assert seen is not None
    assert 0 <= seen.low <= seen.value <= seen.high <= 1
    assert seen.items == counted[1]


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [(0, 5, 0, 0.4345), (3, 40, 0.0258, 0.1986), (40, 40, 0.9124, 1), (517, 1_000, 0.4860, 0.5478)],
)
def test_a_shares_interval_is_wilsons(count: int, of: int, low: float, high: float) -> None:
    """The bounds are those of scipy.stats.binomtest(count, of).proportion_ci(0.95, "wilson")."""
    seen = share(count, of, 0.95)
    assert seen is not None
    assert (seen.low, seen.high) == pytest.approx((low, high), abs=1e-4)


@settings(max_examples=30)
@given(SCORES)
def test_a_mean_lies_in_its_interval_and_the_interval_within_the_scores(scores: dict[float, int]) -> None:
    seen = mean(scores, 0.95)
    assert seen is not None
    assert min(scores) - 1e-9 <= seen.low <= seen.value <= seen.high <= max(scores) + 1e-9
    assert mean(scores, 0.95) == seen  # the same draw each time


def test_more_items_make_both_narrower() -> None:
    few, many = mean({0.0: 5, 1.0: 15}, 0.95), mean({0.0: 500, 1.0: 1500}, 0.95)
    assert few is not None
    assert many is not None
    assert many.high - many.low < (few.high - few.low) / 5
    assert (one := share(5, 20, 0.95)) is not None
    assert (other := share(500, 2000, 0.95)) is not None
    assert other.high - other.low < (one.high - one.low) / 5


def test_nothing_counted_is_no_number() -> None:
    assert share(0, 0, 0.95) is None
    assert mean({}, 0.95) is None


def test_many_intervals_are_each_surer_so_that_all_together_are_as_sure_as_one() -> None:
    assert for_each_of(0.95, 1) == pytest.approx(0.95)
    assert for_each_of(0.95, 1000) == pytest.approx(0.99995)
    wide = share(40, 40, for_each_of(0.95, 1000))
    assert wide is not None
    assert wide.low > 0.6  # a clear failure of one tenant among a thousand is still one
