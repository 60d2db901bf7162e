"""JSON answers of providers' calls, and the times in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from nightmill.providers.cleaning import json_value

_LAST_YEAR = 2200  # a later time is a slip, and sums with it overflow


class MalformedAnswerError(ValueError):
    """A body that is not what the API documents. Stays inside the adapter; its text holds no part of the body."""


def json_object(body: bytes) -> dict[str, Any]:
    """The body as a JSON object, whatever its content type claims."""
    try:
        value = json_value(body)
    except ValueError:
        value = None
        why = "HTML" if body.lstrip()[:1] == b"<" else "no JSON"
    else:
        why = "no JSON object"
    if not isinstance(value, dict):
        raise MalformedAnswerError(why)
    return value


def read_time(value: object) -> datetime | None:
    """Epoch seconds (int, float, digits), epoch milliseconds, or ISO 8601 with any number of decimals; UTC.

    None for anything else, and for a time before 1970 or after 2200. A time without an offset is taken as UTC.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        moment = _epoch(float(value))
    except ValueError:
        moment = _iso_time(str(value))
    except OverflowError:
        return None
    return moment if moment is not None and 1970 <= moment.year <= _LAST_YEAR else None


def _epoch(number: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(number / 1000 if number > 1e11 else number, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _iso_time(value: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value.strip())
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
