"""Reads the batch objects of OpenAI and of servers that are nearly compatible."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar

import msgspec

from nightmill.providers.cleaning import identifier, json_value, prose, storable, whole, word
from nightmill.providers.port import BatchSnapshot, BatchStatus, FileProblem

TOKEN_KEY = "nightmill_token"
_LAST_YEAR = 2200  # a later time is a slip, and sums with it overflow
_MOST_COUNTS = 20
_KIND = re.compile(r"[a-z][a-z._]{0,40}")
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
        value = json_value(body)
    except ValueError:
        value = None
        why = "HTML" if body.lstrip()[:1] == b"<" else "no JSON"
    else:
        why = "no JSON object"
    if not isinstance(value, dict):
        raise MalformedAnswerError(why)
    return value


def file_id(body: bytes) -> str:
    """The id of a file object. Raises MalformedAnswerError for what is none."""
    value = json_object(body)
    found = identifier(value.get("id"))
    if not _is_a("file", value) or found is None:
        raise MalformedAnswerError("no file object")
    return found


def batch_snapshot(raw: Mapping[str, Any]) -> BatchSnapshot:
    """The batch object in our words. Raises MalformedAnswerError when it has no id, or neither a status nor a kind.

    A status that is no word is one that nobody knows: what is paid for can still be asked for later.
    """
    provider_id, raw_status = identifier(raw.get("id")), word(raw.get("status"))
    if raw_status is None and word(raw.get("object")) == "batch":
        raw_status = "unreadable"
    if not _is_a("batch", raw) or provider_id is None or raw_status is None:
        raise MalformedAnswerError("no batch object")
    counts = _counts(raw.get("request_counts"))
    output_file_id = identifier(raw.get("output_file_id"))
    status = status_of(raw_status)
    if status is BatchStatus.FAILED and (output_file_id or (counts or {}).get("completed", 0) > 0):
        status = BatchStatus.ENDED  # it died half-way: something was executed and is paid for
    if status is BatchStatus.UNKNOWN and output_file_id and _end_time(raw):
        status = BatchStatus.ENDED  # whatever the word means: it names its end and its answers
    return BatchSnapshot(
        provider_id=provider_id,
        status=status,
        raw_status=raw_status,
        input_file_id=identifier(raw.get("input_file_id")) or "",
        token=token_of(raw),
        created_at=read_time(raw.get("created_at")),
        ended_at=_end_time(raw),
        output_file_id=output_file_id,
        error_file_id=identifier(raw.get("error_file_id")),
        counts=counts,
        problems=tuple(_problems(raw.get("errors"), raw.get("error"))),
        raw=storable(raw),
    )


def token_of(raw: Mapping[str, Any]) -> str | None:
    """Our intent token in the metadata of a batch object."""
    metadata = raw.get("metadata")
    carried = metadata.get(TOKEN_KEY) if isinstance(metadata, Mapping) else None
    return identifier(carried) if isinstance(carried, str) else None


def status_of(raw_status: str) -> BatchStatus:
    """Our word for a provider's status; UNKNOWN for one that is not documented."""
    return _STATUSES.get(raw_status.strip().casefold(), BatchStatus.UNKNOWN)


def _is_a(kind: str, raw: Mapping[str, Any]) -> bool:
    """Whether an object does not claim to be of another kind; what is no name of a kind claims nothing."""
    claimed = raw.get("object")
    return claimed == kind or not isinstance(claimed, str) or not _KIND.fullmatch(claimed)


def _end_time(raw: Mapping[str, Any]) -> datetime | None:
    names = ("completed_at", "expired_at", "cancelled_at", "failed_at")
    return next((moment for name in names if (moment := read_time(raw.get(name)))), None)


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


def _counts(value: object) -> dict[str, int] | None:
    if not isinstance(value, Mapping):
        return None
    known = {name: count for key, told in value.items() if (name := word(key)) and (count := whole(told)) is not None}
    return dict(list(known.items())[:_MOST_COUNTS]) or None


def _problems(*told: object) -> Iterable[FileProblem]:
    """The complaints, as the API lists them; or as one object, or as text alone."""
    for errors in told:
        listed = errors.get("data") if isinstance(errors, Mapping) and "data" in errors else errors
        for entry in listed if isinstance(listed, list) else [listed]:
            if isinstance(entry, Mapping) and any(entry.get(name) for name in ("code", "type", "message")):
                yield FileProblem(
                    code=word(entry.get("code")) or word(entry.get("type")) or "unknown",
                    message=prose(entry.get("message")) or "",
                    line=whole(entry.get("line")),
                    param=word(entry.get("param")) or "",
                    custom_id=identifier(entry.get("custom_id")),
                )
            elif isinstance(entry, str) and entry.strip():
                yield FileProblem(code="unknown", message=prose(entry) or "", line=None)
