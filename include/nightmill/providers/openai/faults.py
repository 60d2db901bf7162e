"""Turns what the `openai` client raises into our faults.

Messages name the call, the HTTP status and the provider's error code, and of its own message only what `openai_words`
lets through: it can quote the key or a piece of a document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import openai

from nightmill.domain.classification import classify_line_error
from nightmill.domain.errors import NightmillError, ProviderRefused, ProviderUnavailable
from nightmill.domain.failures import Failure, FailureClass
from nightmill.domain.foreign_faults import untrusted
from nightmill.domain.limits import Dimensions, Limit, limit_of, too_large_in
from nightmill.domain.wording import START_ANEW
from nightmill.providers.call_faults import not_taken, retry_after_s, submit_unknown, unreached
from nightmill.providers.cleaning import prose, word
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.http_guard import AnswerError
from nightmill.providers.openai.words import refusal_words, refused_parameter

_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_MISSING_FILE = re.compile(
    r"no such file|file.{0,80}(not found|not exist|not (yet )?(processed|ready|available))", re.IGNORECASE
)
_UNCLEAR = frozenset({408, 409, 425})
_PINNED = {"model": "model", "endpoint": "task", "completion_window": "completion_window"}  # by their names in job.yaml


def fault_of(error: Exception, doing: str, connection: ProviderConnection, *, lagging: bool) -> NightmillError:
    """The fault for a call that is safe to repeat.

    `lagging`: the call names something that we made, so a 404 is a replica that has not seen it yet (the caller keeps
    the grace window). Without it a 404 means a wrong address.
    """
    if isinstance(error, AnswerError):
        return not_taken(error, doing, connection)
    if not isinstance(error, openai.APIStatusError):
        return unreached(error, doing, connection)
    status, failure, limit = error.status_code, _failure(error), _limit(error)
    if limit is Limit.QUEUE:
        return _unavailable(error, doing, connection, "has no room now", limit)
    if limit is Limit.SIZE:
        return _refused(error, doing, connection, too_large_in(*_code_and_message(error), status))
    if failure.kind is FailureClass.TRANSIENT or (status == 404 and lagging):
        what = "asked to slow down" if status == 429 else "cannot answer now"
        return _unavailable(error, doing, connection, what, limit)
    return _refused(error, doing, connection)


def _limit(error: openai.APIStatusError) -> Limit | None:
    """The limit that a call was surely refused for. What is about money or the key is none."""
    code, kind, message = _words(error)
    if not 400 <= error.status_code < 500 or error.status_code in (401, 404, 408, 409, 425):
        return None
    limit = limit_of(code, kind, message, error.status_code)
    if limit is Limit.RATE and _failure(error).kind is FailureClass.CAPACITY:
        return None
    return limit


def _words(error: openai.APIStatusError) -> tuple[str, str, str]:
    """What an error says: code, type and message."""
    body: Any = error.body
    while isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        body = body["error"]  # some gateways wrap the error object once more
    if not isinstance(body, Mapping):
        return "", "", prose(body) or ""
    message = prose(body.get("message")) or prose(body.get("detail")) or prose(body.get("error")) or ""
    return word(body.get("code")) or "", word(body.get("type")) or word(body.get("status")) or "", message


def _code_and_message(error: openai.APIStatusError) -> tuple[str, str]:
    code, _, message = _words(error)
    return code, message


def create_fault(error: Exception, doing: str, connection: ProviderConnection) -> NightmillError:
    """The fault for creating a batch, which costs money when it is repeated: every unclear end is SubmitUnknown."""
    if isinstance(error, AnswerError):
        return submit_unknown(str(error), doing, connection)
    if not isinstance(error, openai.APIStatusError):
        if untrusted(error):  # before anything was sent
            return unreached(error, doing, connection)
        return submit_unknown(type(error).__name__, doing, connection)
    status = error.status_code
    if status in (400, 404) and _MISSING_FILE.search(_body_text(error)):
        return _unavailable(error, doing, connection, "does not see the uploaded file yet")
    if _limit(error) in (Limit.QUEUE, Limit.SIZE):
        return fault_of(error, doing, connection, lagging=False)  # whoever says it has done nothing
    page = not isinstance(error.body, Mapping) and status not in (401, 403)  # a gateway's own, whatever lies behind it
    if status in _UNCLEAR or not 400 <= status < 500 or page:
        wait_s = retry_after_s(error.response.headers, datetime.now(UTC))
        return submit_unknown(f"HTTP {status}", doing, connection, wait_s)
    fault = fault_of(error, doing, connection, lagging=False)
    if not isinstance(fault, ProviderRefused) or status in (401, 403) or _failure(error).kind is FailureClass.CAPACITY:
        return fault
    parameter = refused_parameter(error)
    named = _PINNED.get(parameter or "")
    what = f"provider.{named}" if named else "what it names (provider.model, for one)"
    return ProviderRefused(fault.cause, f"Correct {what} in job.yaml, then {START_ANEW}", fault.status, fault.code)


def error_code(error: openai.APIStatusError) -> str | None:
    """The provider's error code (or else type), only if it looks like a code and not like prose."""
    body = error.body if isinstance(error.body, Mapping) else {}
    for value in (body.get("code"), body.get("type")):
        if isinstance(value, str) and _CODE.fullmatch(value):
            return value
    return None


def _unavailable(
    error: openai.APIStatusError, doing: str, connection: ProviderConnection, what: str, limit: Limit | None = None
) -> ProviderUnavailable:
    return ProviderUnavailable(
        f"The provider of connection {connection.conn_id!r} {what} while {doing} ({_status(error)}).",
        "It is tried again later.",
        retry_after_s(error.response.headers, datetime.now(UTC)),
        limit,
    )


def _refused(
    error: openai.APIStatusError, doing: str, connection: ProviderConnection, too_large: Dimensions | None = None
) -> ProviderRefused:
    status, code, conn_id = error.status_code, error_code(error), connection.conn_id
    if status in (401, 403):
        remedy = f"Check key, organisation and project of the Airflow connection {conn_id!r}."
    elif too_large is not None:
        remedy = "Smaller files are sent; provider.limits in job.yaml can name the limit."
    elif _failure(error).kind is FailureClass.CAPACITY:
        remedy = f"The account of connection {conn_id!r} has no credit left: raise its limit, then clear the task."
    elif status == 404:
        remedy = f"Check the address (host) of the Airflow connection {conn_id!r} and the model's name."
    else:
        remedy = "Check the job's model and parameters against the provider's documentation."
    cause = (
        f"The provider of connection {conn_id!r} refused {doing} ({_status(error)}{refusal_words(error, connection)})."
    )
    return ProviderRefused(cause, remedy, status, code, too_large)


def _failure(error: openai.APIStatusError) -> Failure:
    code, kind, message = _words(error)
    return classify_line_error(error.status_code, code, message, kind)


def _status(error: openai.APIStatusError) -> str:
    code = error_code(error)
    return f"HTTP {error.status_code}" + (f", {code}" if code else "")


def _body_text(error: openai.APIStatusError) -> str:
    body: Any = error.body
    if isinstance(body, Mapping):
        told = (body.get(key) for key in ("message", "detail", "error", "code", "param"))
        return " ".join(prose(str(one or "")) or "" for one in told)
    return str(body or "")[:2000]
