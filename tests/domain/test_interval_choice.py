"""Which interval a person means."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from nightmill.domain.errors import ConfigError
from nightmill.domain.interval_choice import choose

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
