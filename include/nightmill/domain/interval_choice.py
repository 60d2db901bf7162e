"""Which data interval a person means by its start."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, tzinfo

from nightmill.domain.errors import ConfigError

Interval = tuple[datetime, datetime]
MOST_NAMED = 10


def choose(asked: str, known: Iterable[Interval], zone: tzinfo = UTC) -> Interval:
    """The one of the known intervals that begins at this moment or, for a date alone, on this day in the zone. Raises
    ConfigError where none does, or several do."""
    intervals = sorted(set(known), reverse=True)
    found = [one for one in intervals if _begins(one, asked, zone)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(one[0].isoformat() for one in (found or intervals)[:MOST_NAMED])
    more = " and older ones" if len(found or intervals) > MOST_NAMED else ""
    if found:
        raise ConfigError(f"{len(found)} intervals begin on {asked}.", f"Give the moment of one: {listed}{more}.")
    remedy = f"Give the start of one of these: {listed}{more}." if intervals else "Leave --interval out."
    raise ConfigError(f"No interval begins at {asked!r}.", remedy)


def _begins(one: Interval, asked: str, zone: tzinfo) -> bool:
    try:
        return one[0].astimezone(zone).date() == date.fromisoformat(asked)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(asked)
    except ValueError:
        raise ConfigError(
            f"{asked!r} is not a moment.", "Write it as 2026-01-31 or 2026-01-31T02:00:00+00:00."
        ) from None
    return one[0] == (moment if moment.tzinfo else moment.replace(tzinfo=zone))
