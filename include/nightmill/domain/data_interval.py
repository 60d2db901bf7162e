"""The data interval of a run: what a source query that binds it needs, and what a run by hand can forget."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from nightmill.domain.errors import ConfigError, SourceError
from nightmill.domain.filters import INTERVAL, parameters_of

ONE_INTERVAL = "each run replaces the view: it then shows the rows of that run's interval and no others"
FORM = "the fields data_interval_start and data_interval_end of its trigger form"


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
            f"The source query binds {_listed(missing)}, and this run has none: a run by hand gets no data interval.",
            f"Fill in the data interval of a new run: {FORM} (`make run`: --data-interval START END).",
        )
    if start is not None and end is not None and (end < start or (end == start and needed == INTERVAL)):
        raise SourceError(
            f"The data interval of this run, {start.isoformat()} to {end.isoformat()}, holds nothing.",
            f"Fill in the data interval of a new run: {FORM}, the earlier one first.",
        )


def refuse_none(view: str, start: datetime | None, end: datetime | None) -> None:
    """Raise SourceError where a view of intervals could not tell which one a run is of."""
    if start is None or end is None or start >= end:
        given = "none" if start is None or end is None else f"an empty one, {start.isoformat()} to {end.isoformat()}"
        raise SourceError(
            f"results.{view} shows a batch for each data interval (publish.mode: by_interval); this run has {given}.",
            f"Fill in the data interval of a new run: {FORM} (`make run`: --data-interval START END).",
        )


def _listed(names: Collection[str]) -> str:
    return " and ".join(f"%({name})s" for name in names)
