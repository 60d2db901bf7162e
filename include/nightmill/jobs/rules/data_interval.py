"""The data interval of a run: what a source query that binds it needs, and what a run by hand can forget."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from nightmill.domain.errors import ConfigError, SourceError
from nightmill.jobs.filters import INTERVAL, parameters_of

ONE_INTERVAL = "each run replaces the view: it then shows the rows of that run's interval and no others"
FORM = "under `Data interval` of its trigger form"


def bound_in(query: str) -> frozenset[str]:
    """Which ends of the data interval a query binds."""
    return INTERVAL & {name for name, _ in parameters_of(query)}


def is_window(query: str) -> bool:
    """Whether a query returns the rows of one interval only: it binds the start. One that binds the end alone returns
    everything up to it."""
    return "data_interval_start" in bound_in(query)


def moment(name: str, value: str | None) -> datetime | None:
    """A moment of the trigger form; UTC where it names no offset. Raises ConfigError."""
    if not value:
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise ConfigError(
            f"{name} is not a moment.", "Trigger a new run with one such as 2026-01-31T02:00:00+00:00."
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def refuse_unfit(query: str, start: datetime | None, end: datetime | None) -> None:
    """Raise SourceError where the query binds an end that the run does not have, or where nothing lies between them.

    For the moment before a batch is opened: no clearing could give a run another interval.
    """
    needed = bound_in(query)
    given = {"data_interval_start": start, "data_interval_end": end}
    missing = [name for name in sorted(needed) if given[name] is None]
    if missing:
        raise SourceError(
            f"The source query binds {_listed(missing)}, and this run has none: neither Airflow's schedule nor "
            "the event of an asset gave it a data interval.",
            f"Fill in the data interval of a new run {FORM} (`make run`: --data-interval START END).",
        )
    if start is not None and end is not None and (end < start or (end == start and needed == INTERVAL)):
        raise SourceError(
            f"The data interval of this run, {start.isoformat()} to {end.isoformat()}, holds nothing.",
            f"Fill in the data interval of a new run {FORM}, the earlier one first.",
        )


def refuse_none(view: str, start: datetime | None, end: datetime | None) -> None:
    """Raise SourceError where a view of intervals could not tell which one a run is of."""
    if start is None or end is None or start >= end:
        given = "none" if start is None or end is None else f"an empty one, {start.isoformat()} to {end.isoformat()}"
        raise SourceError(
            f"results.{view} shows a batch for each data interval (publish.mode: by_interval); this run has {given}.",
            f"Fill in the data interval of a new run: {FORM} (`make run`: --data-interval START END).",
        )


def span_of(events: Iterable[tuple[str, Mapping[str, Any]]], *, gapless: bool) -> tuple[datetime, datetime] | None:
    """The data interval that asset events give the run that they started: from the earliest start to the latest end.
    `events` are names of assets with what each event says; one that names no interval is left out. None: none names
    one.

    Raises SourceError for an event whose interval is none, and where `gapless` for a hole between two intervals: the
    run would read rows in it that nobody announced, and publish them as if they were complete.
    """
    spans = sorted(found for name, extra in events if (found := _announced(name, extra)) is not None)
    if not spans:
        return None
    start, end = spans[0]
    for begins, ends in spans[1:]:
        if gapless and begins > end:
            raise SourceError(
                f"The asset events that started this run say nothing about the time from {end.isoformat()} to "
                f"{begins.isoformat()}: their data intervals do not join.",
                f"Trigger a new run for each of them with its data interval, {FORM}.",
            )
        end = max(end, ends)
    return start, end


def _announced(asset: str, extra: Mapping[str, Any]) -> tuple[datetime, datetime] | None:
    said = [extra.get(name) for name in ("data_interval_start", "data_interval_end")]
    if said == [None, None]:
        return None
    try:
        start, end = (moment("it", one) if isinstance(one, str) else None for one in said)
    except ConfigError:
        start = end = None
    if start is None or end is None or end < start:
        raise SourceError(
            f"The event of the asset {asset} that started this run names a data interval that is not valid.",
            "Let its DAG write data_interval_start and data_interval_end into the event's extra, both as ISO 8601, the "
            f"earlier one first. Until then, fill in the data interval of a new run {FORM}.",
        )
    return start, end


def _listed(names: Collection[str]) -> str:
    return " and ".join(f"%({name})s" for name in names)
