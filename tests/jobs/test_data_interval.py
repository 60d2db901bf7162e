"""The data interval that asset events give a run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from nightmill.domain.errors import SourceError
from nightmill.jobs.rules.data_interval import span_of


def day(number: int) -> datetime:
    return datetime(2026, 1, number, 2, tzinfo=UTC)


def said(start: int, end: int) -> dict[str, Any]:
    """The extra of an event, as publish writes it."""
    return {"batch_id": 7, "data_interval_start": day(start).isoformat(), "data_interval_end": day(end).isoformat()}


@pytest.mark.parametrize(
    ("events", "span"),
    [
        ([], None),
        ([{}], None),
        ([{"data_interval_start": None, "data_interval_end": None}], None),
        ([said(1, 2)], (1, 2)),
        ([said(1, 2), {}], (1, 2)),
        ([said(2, 3), said(1, 2)], (1, 3)),
        ([said(1, 2), said(1, 2)], (1, 2)),
        ([said(1, 5), said(2, 3), said(4, 6)], (1, 6)),
    ],
)
def test_a_run_has_the_widest_span_of_the_events_that_started_it(
    events: list[dict[str, Any]], span: tuple[int, int] | None
) -> None:
    expected = None if span is None else (day(span[0]), day(span[1]))
    assert span_of([("terms", one) for one in events], gapless=True) == expected


def test_a_hole_between_two_intervals_is_refused_where_the_run_would_publish_it_as_complete() -> None:
    events = [("terms", said(1, 2)), ("terms", said(3, 4))]
    with pytest.raises(SourceError, match=r"from 2026-01-02T02:00.*to 2026-01-03T02:00.*Remedy: Trigger a new run for"):
        span_of(events, gapless=True)
    assert span_of(events, gapless=False) == (day(1), day(4))


@pytest.mark.parametrize(
    "extra",
    [
        {"data_interval_start": "soon", "data_interval_end": "2026-01-02"},
        {"data_interval_start": "2026-01-02"},
        {"data_interval_start": 1, "data_interval_end": 2},
        said(2, 1),
    ],
)
def test_an_event_with_half_an_interval_is_refused_and_its_asset_is_named(extra: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match="The event of the asset terms"):
        span_of([("terms", extra)], gapless=False)


def test_a_moment_without_an_offset_is_utc() -> None:
    extra = {"data_interval_start": "2026-01-01T02:00", "data_interval_end": "2026-01-02T03:00:00+01:00"}
    assert span_of([("terms", extra)], gapless=True) == (day(1), day(2))
