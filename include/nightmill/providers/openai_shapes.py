"""Reads the batch objects of OpenAI and of servers that are nearly compatible."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar

import msgspec

from nightmill.providers.port import BatchSnapshot, BatchStatus, FileProblem

TOKEN_KEY = "nightmill_token"
MOST_TOKENS = 2**31 - 1  # what says more is no count
_MESSAGE_CHARS = 500
# The eight documented words; Azure capitalises them, some servers write American "canceled".
_STATUSES = {
    "validating": BatchStatus.WAITING,
    "in_progress": BatchStatus.RUNNING,
    "finalizing": BatchStatus.RUNNING,
    "cancelling": BatchStatus.RUNNING,
    "canceling": BatchStatus.RUNNING,
    "completed": BatchStatus.ENDED,
    "expired": BatchStatus.ENDED,
    "cancelled": BatchStatus.ENDED,
    "canceled": BatchStatus.ENDED,
    "failed": BatchStatus.FAILED,
}


Body = TypeVar("Body")


class DocumentedResponse(msgspec.Struct, Generic[Body], gc=False):
    """The response part of a result line, with the body that its endpoint documents."""

    status_code: Literal[200]
    body: Body


class DocumentedLine(msgspec.Struct, Generic[Body], gc=False):
    """A result line as the API documents it: nearly every line. Whatever differs is read with more care."""

    custom_id: str
    response: DocumentedResponse[Body]
    error: None = None


class MalformedAnswerError(ValueError):
    """A body that is not what the API documents. Stays inside the adapter; its text holds no part of the body."""


def json_object(body: bytes) -> dict[str, Any]:
    """The body as a JSON object, whatever its content type claims."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
        why = "HTML" if body.lstrip()[:1] == b"<" else "no JSON"
    else:
        why = "no JSON object"
    if not isinstance(value, dict):
        raise MalformedAnswerError(why)
    return value


def named_object(body: bytes, kind: str) -> dict[str, Any]:
    """A JSON object that has an id and does not claim to be of another kind."""
    value = json_object(body)
    if value.get("object") not in (None, kind) or not _text(value.get("id")):
        raise MalformedAnswerError(f"no {kind} object")
    return value


def batch_snapshot(raw: Mapping[str, Any]) -> BatchSnapshot:
    """The batch object in our words. Raises MalformedAnswerError when it has no id or no status."""
    provider_id, raw_status = _text(raw.get("id")), _text(raw.get("status"))
    if raw.get("object") not in (None, "batch") or provider_id is None or raw_status is None:
        raise MalformedAnswerError("no batch object")
    counts = _counts(raw.get("request_counts"))
    output_file_id = _text(raw.get("output_file_id"))
    status = status_of(raw_status)
    if status is BatchStatus.FAILED and (output_file_id or (counts or {}).get("completed", 0) > 0):
        status = BatchStatus.ENDED  # it died half-way: something was executed and is paid for
    metadata = raw.get("metadata")
    return BatchSnapshot(
        provider_id=provider_id,
        status=status,
        raw_status=raw_status,
        input_file_id=_text(raw.get("input_file_id")) or "",
        token=_text(metadata.get(TOKEN_KEY)) if isinstance(metadata, Mapping) else None,
        created_at=read_time(raw.get("created_at")),
        ended_at=_end_time(raw),
        output_file_id=output_file_id,
        error_file_id=_text(raw.get("error_file_id")),
        counts=counts,
        problems=tuple(_problems(raw.get("errors"))),
        raw=dict(raw),
    )


def status_of(raw_status: str) -> BatchStatus:
    """Our word for a provider's status; UNKNOWN for one that is not documented."""
    return _STATUSES.get(raw_status.strip().casefold(), BatchStatus.UNKNOWN)


def _end_time(raw: Mapping[str, Any]) -> datetime | None:
    names = ("completed_at", "expired_at", "cancelled_at", "failed_at")
    return next((moment for name in names if (moment := read_time(raw.get(name)))), None)


def read_time(value: object) -> datetime | None:
    """Epoch seconds (int, float, digits), epoch milliseconds, or ISO 8601 with any number of decimals; UTC.

    None for anything else. A time without an offset is taken as UTC.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except ValueError:
        return _iso_time(str(value))
    except OverflowError:
        return None
    try:
        return datetime.fromtimestamp(number / 1000 if number > 1e11 else number, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _iso_time(value: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _counts(value: object) -> dict[str, int] | None:
    if not isinstance(value, Mapping):
        return None
    known = {str(key): number for key, number in value.items() if isinstance(number, int)}
    return known or None


def _problems(errors: object) -> Iterable[FileProblem]:
    data = errors.get("data") if isinstance(errors, Mapping) else errors
    for entry in data if isinstance(data, list) else ():
        if isinstance(entry, Mapping):
            line = entry.get("line")
            yield FileProblem(
                code=_text(entry.get("code")) or "unknown",
                message=str(entry.get("message") or "")[:_MESSAGE_CHARS],
                line=line if isinstance(line, int) else None,
            )
