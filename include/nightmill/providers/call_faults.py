"""Faults of calls that no vendor words in a way of its own: a server that is not reached, an answer that is not taken.

Messages name the call and the connection, and quote nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from nightmill.domain.errors import (
    AnswerTooLarge,
    NightmillError,
    ProviderRefused,
    ProviderUnavailable,
    SubmitUnknown,
)
from nightmill.domain.foreign_faults import TRUST, untrusted
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.http_guard import AnswerError, RedirectedError, TooLargeError

MOST_RETRY_AFTER_S = 30 * 24 * 3600.0  # what is longer is taken for this


def unreached(error: Exception, doing: str, connection: ProviderConnection) -> ProviderUnavailable:
    why = untrusted(error)
    if why is not None:
        cause = f"The server of connection {connection.conn_id!r} is not to be trusted while {doing}: {why}."
        return ProviderUnavailable(cause, f"{TRUST} It is tried again.")
    return ProviderUnavailable(
        f"The provider of connection {connection.conn_id!r} could not be reached while {doing} "
        f"({type(error).__name__}).",
        "It is tried again; if it stays, check the address and the network.",
    )


def submit_unknown(why: str, doing: str, connection: ProviderConnection, wait_s: float | None = None) -> SubmitUnknown:
    return SubmitUnknown(
        f"No trustworthy answer of connection {connection.conn_id!r} while {doing} ({why}); "
        "the provider may have accepted the work.",
        "The work is looked up at the provider before anything is sent again.",
        wait_s,
    )


def malformed(why: str, doing: str, connection: ProviderConnection) -> ProviderUnavailable:
    """A 2xx whose body is not what the API documents: a proxy's page, half an answer."""
    return ProviderUnavailable(
        f"Connection {connection.conn_id!r} answered something that is not the API's while {doing}: {why}.",
        "It is tried again; if it stays, look for a proxy or gateway between here and the provider.",
    )


def too_large(key: str, most: int, doing: str, connection: ProviderConnection) -> AnswerTooLarge:
    """The fault for what is beyond the limit `key` of the connection."""
    return AnswerTooLarge(
        f"The provider of connection {connection.conn_id!r} sent more than the {most:,} bytes of {key} while {doing}.",
        f"Nothing is lost: it can be fetched again. Ask the provider what it sends; if that is right, put a larger "
        f"{key} into the connection's extra. Then clear the task.",
    )


def not_taken(error: AnswerError, doing: str, connection: ProviderConnection) -> NightmillError:
    if isinstance(error, TooLargeError):
        return too_large(error.key, error.most, doing, connection)
    if not isinstance(error, RedirectedError):
        return malformed(str(error), doing, connection)
    cause = f"The server of connection {connection.conn_id!r} answered with {error} while {doing}; it is not followed."
    remedy = (
        f"Put the address that the provider documents into the host of the connection {connection.conn_id!r}; if that "
        "stands there, look for a proxy or login page between here and the provider."
    )
    if error.method == "GET":
        return ProviderUnavailable(cause, remedy)
    return ProviderRefused(cause, remedy, error.status)


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the provider asks to wait: `retry-after-ms`, or Retry-After as seconds or as an HTTP date.

    Up to 30 days are honoured; the SDK itself gives up on more than 120 s.
    """
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / divisor
        except ValueError:
            continue
        return _bounded(seconds)
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return _bounded((until - now).total_seconds())


def _bounded(seconds: float) -> float | None:
    return min(max(seconds, 0.0), MOST_RETRY_AFTER_S) if math.isfinite(seconds) else None
