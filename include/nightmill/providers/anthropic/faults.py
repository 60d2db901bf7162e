"""Turns what the `anthropic` client raises into our faults.

Messages name the call, the HTTP status and the provider's words for the error (`type`, `error_code`), never its own
message: that can quote a request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import anthropic

from nightmill.domain.classification import classify_line_error
from nightmill.domain.errors import NightmillError, ProviderRefused, ProviderUnavailable
from nightmill.domain.failures import FailureClass
from nightmill.domain.foreign_faults import untrusted
from nightmill.domain.limits import Dimensions, Limit, limit_of
from nightmill.providers.anthropic.client import workspace_of
from nightmill.providers.call_faults import not_taken, retry_after_s, submit_unknown, unreached
from nightmill.providers.cleaning import prose, word
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.http_guard import AnswerError

_UNCLEAR = frozenset({408, 409, 425})
_EITHER = Dimensions(bytes=True, requests=True)  # a 413 names no limit
# A spend limit is a 429 with this code and without retry-after; a workspace's own is a 400 that only its text tells.
_SPENT_CODES = ("enforced_spend_limit_reached",)
_SPENT_WORDS = re.compile(r"\b(spend|usage)\s+limits?\b|\bcredit balance\b", re.IGNORECASE)


def fault_of(
    error: Exception, doing: str, connection: ProviderConnection, *, lagging: bool, creates: bool = False
) -> NightmillError:
    """The fault for a call that is safe to repeat.

    `lagging`: the call names something that we made, so a 404 is a replica that has not seen it yet (seen for minutes;
    the caller keeps the grace window). `creates`: a 429 that names no time to wait asks for a person.
    """
    if isinstance(error, AnswerError):
        return not_taken(error, doing, connection)
    if not isinstance(error, anthropic.APIStatusError):
        return unreached(error, doing, connection)
    status, limit = error.status_code, _limit(error)
    if _is_about_money(error) or (creates and limit in (Limit.QUEUE, Limit.RATE) and _wait_s(error) is None):
        return _refused(error, doing, connection)
    if limit is Limit.SIZE:
        return _refused(error, doing, connection, _EITHER)
    if limit is Limit.QUEUE:
        return _unavailable(error, doing, connection, "has no room now", limit)
    if status == 429 or status in _UNCLEAR or status >= 500 or (status == 404 and lagging):
        what = "asked to slow down" if status == 429 else "cannot answer now"
        return _unavailable(error, doing, connection, what, limit)
    return _refused(error, doing, connection)


def create_fault(error: Exception, doing: str, connection: ProviderConnection) -> NightmillError:
    """The fault for creating a batch, which costs money when it is repeated: every unclear end is SubmitUnknown."""
    if isinstance(error, AnswerError):
        return submit_unknown(str(error), doing, connection)
    if not isinstance(error, anthropic.APIStatusError):
        if untrusted(error):  # before anything was sent
            return unreached(error, doing, connection)
        return submit_unknown(type(error).__name__, doing, connection)
    status = error.status_code
    page = not isinstance(error.body, Mapping) and status not in (401, 403, 413)  # a gateway's own
    if status in _UNCLEAR or not 400 <= status < 500 or page:
        return submit_unknown(f"HTTP {status}", doing, connection, _wait_s(error))
    return fault_of(error, doing, connection, lagging=False, creates=True)


def _limit(error: anthropic.APIStatusError) -> Limit | None:
    """The limit that a call was surely refused for. What is about money or the key is none."""
    if not 400 <= error.status_code < 500 or error.status_code in (401, 403, 404, *_UNCLEAR):
        return None
    return limit_of(_code(error) or "", _type(error) or "", _message(error), error.status_code)


def _is_about_money(error: anthropic.APIStatusError) -> bool:
    if _code(error) in _SPENT_CODES or _SPENT_WORDS.search(_message(error)):
        return True
    failure = classify_line_error(error.status_code, _code(error) or "", _message(error), _type(error) or "")
    return failure.kind is FailureClass.CAPACITY


def _unavailable(
    error: anthropic.APIStatusError, doing: str, connection: ProviderConnection, what: str, limit: Limit | None
) -> ProviderUnavailable:
    return ProviderUnavailable(
        f"The provider of connection {connection.conn_id!r} {what} while {doing} ({_told(error)}).",
        "It is tried again later.",
        _wait_s(error),
        limit,
    )


def _refused(
    error: anthropic.APIStatusError, doing: str, connection: ProviderConnection, too_large: Dimensions | None = None
) -> ProviderRefused:
    cause = f"The provider of connection {connection.conn_id!r} refused {doing} ({_told(error)})."
    remedy = "Smaller batches are sent; provider.limits in job.yaml can name the limit."
    if too_large is None:
        remedy = _remedy(error, connection)
    return ProviderRefused(cause, remedy, error.status_code, _code(error) or _type(error), too_large)


def _remedy(error: anthropic.APIStatusError, connection: ProviderConnection) -> str:
    status, conn_id = error.status_code, connection.conn_id
    if status in (401, 403):
        workspace = workspace_of(connection)
        where = f"that it may use workspace {workspace}" if workspace else "its workspace"
        return f"Check the key of the Airflow connection {conn_id!r} and {where}, then clear the task."
    if _is_about_money(error) or status == 429:
        return (
            f"Look at the limits and the billing of the organisation of connection {conn_id!r} in the provider's "
            "console: it names no time after which it takes batches again. Raise the limit, then clear the task."
        )
    if status == 404:
        return f"Check the address (host) of the Airflow connection {conn_id!r}."
    return "Check the job's model and parameters against the provider's documentation."


def _told(error: anthropic.APIStatusError) -> str:
    words = [f"HTTP {error.status_code}", _type(error), _code(error)]
    return ", ".join(one for one in words if one)


def _type(error: anthropic.APIStatusError) -> str | None:
    return word(_inner(error).get("type"))


def _code(error: anthropic.APIStatusError) -> str | None:
    details = _inner(error).get("details")
    return word(details.get("error_code")) if isinstance(details, Mapping) else None


def _message(error: anthropic.APIStatusError) -> str:
    return prose(_inner(error).get("message")) or ""


def _inner(error: anthropic.APIStatusError) -> Mapping[str, Any]:
    body: Any = error.body
    while isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        body = body["error"]
    return body if isinstance(body, Mapping) else {}


def _wait_s(error: anthropic.APIStatusError) -> float | None:
    return retry_after_s(error.response.headers, datetime.now(UTC))
