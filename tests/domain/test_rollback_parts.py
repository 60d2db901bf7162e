"""Which parts show a set of batches, and which interval a person means."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmill.domain.errors import ConfigError
from nightmill.domain.interval_choice import choose
from nightmill.domain.rollback_parts import parts_for


@dataclass(frozen=True)
class In:
    part_id: int
    batch_id: int


def alone(*batches: int) -> list[In]:
    return [In(batch, batch) for batch in batches]


def merged(part: int, *batches: int) -> list[In]:
    return [In(part, batch) for batch in batches]


def test_the_preferred_parts_are_taken_where_they_fit() -> None:
    assert parts_for({1, 2}, alone(1, 2), merged(-1, 1, 2)) == alone(1, 2)
    assert parts_for({1, 2, 3}, alone(3), [*merged(-1, 1, 2), *alone(4)]) == [*alone(3), *merged(-1, 1, 2)]


def test_a_merged_part_is_taken_whole_or_not_at_all() -> None:
    assert parts_for({1}, merged(-1, 1, 2), []) is None
    assert parts_for({1, 2}, alone(1), merged(-1, 1, 2)) == merged(-1, 1, 2)
    assert parts_for({1, 2, 3}, merged(-1, 1, 2), merged(-2, 2, 3)) is None


def test_no_batch_needs_no_part() -> None:
    assert parts_for(set(), alone(1), alone(2)) == []


parts = st.dictionaries(st.integers(-3, 9), st.frozensets(st.integers(1, 9), min_size=1, max_size=3), max_size=5)


@given(parts, st.frozensets(st.integers(1, 9), max_size=6))
def test_what_is_found_shows_every_wanted_batch_once_and_no_other(
    pool: dict[int, frozenset[int]], wanted: set[int]
) -> None:
    listed = [In(part, batch) for part, batches in pool.items() for batch in batches]
    found = parts_for(wanted, listed[: len(listed) // 2], listed[len(listed) // 2 :])
    if found is not None:
        assert sorted(one.batch_id for one in found) == sorted(wanted)


NIGHTS = [(datetime(2026, 1, day, 1, tzinfo=UTC), datetime(2026, 1, day + 1, 1, tzinfo=UTC)) for day in (1, 2, 3)]
HOURS = [(datetime(2026, 1, 1, hour, tzinfo=UTC), datetime(2026, 1, 1, hour + 1, tzinfo=UTC)) for hour in range(3)]


@pytest.mark.parametrize("asked", ["2026-01-02", "2026-01-02T01:00", "2026-01-02T02:00+01:00", "2026-01-02T01:00:00Z"])
def test_an_interval_is_named_by_its_start_or_the_day_on_which_it_begins(asked: str) -> None:
    assert choose(asked, NIGHTS) == NIGHTS[1]


def test_a_day_and_a_moment_without_a_zone_are_read_in_the_jobs_zone() -> None:
    zone = ZoneInfo("America/New_York")  # five hours behind: these nights begin the evening before
    assert choose("2026-01-01", NIGHTS, zone) == NIGHTS[1]
    assert choose("2026-01-01T20:00", NIGHTS, zone) == NIGHTS[1]


@pytest.mark.parametrize(
    ("asked", "known", "words"),
    [
        ("2026-01-01", HOURS, r"3 intervals begin on 2026-01-01.*2026-01-01T02:00:00\+00:00, 2026-01-01T01"),
        ("2026-02-01", NIGHTS, r"No interval begins at '2026-02-01'.*2026-01-03T01:00:00\+00:00"),
        ("2026-02-01", [], "Leave --interval out"),
        ("soon", NIGHTS, "'soon' is not a moment"),
    ],
)
def test_what_names_none_or_several_is_answered_with_those_there_are(
    asked: str, known: list[tuple[datetime, datetime]], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        choose(asked, known)
