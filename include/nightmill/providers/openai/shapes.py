"""Reads the batch objects of OpenAI and of servers that are nearly compatible."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from nightmill.domain.snapshots import ERROR, OUTPUT, BatchStatus, Complaint, Snapshot, Stopped
from nightmill.providers.cleaning import identifier, prose, storable, whole, word
from nightmill.providers.json_answers import MalformedAnswerError, json_object, read_time

TOKEN_KEY = "nightmill_token"
PAGE_SIZE = 100  # the most that a listing gives at once
RESULTS_KEPT = timedelta(days=30)  # https://platform.openai.com/docs/guides/batch
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


def file_id(body: bytes) -> str:
    """The id of a file object. Raises MalformedAnswerError for what is none."""
    value = json_object(body)
    found = identifier(value.get("id"))
    if not _is_a("file", value) or found is None:
        raise MalformedAnswerError("no file object")
    return found


def batch_snapshot(raw: Mapping[str, Any]) -> Snapshot:
    """The batch object in our words. Raises MalformedAnswerError when it has no id, or neither a status nor a kind.

    A status that is no word is one that nobody knows: what is paid for can still be asked for later.
    """
    provider_id, raw_status = identifier(raw.get("id")), word(raw.get("status"))
    if raw_status is None and word(raw.get("object")) == "batch":
        raw_status = "unreadable"
    if not _is_a("batch", raw) or provider_id is None or raw_status is None:
        raise MalformedAnswerError("no batch object")
    done, answered, total = _counts(raw.get("request_counts"))
    named = ((OUTPUT, identifier(raw.get("output_file_id"))), (ERROR, identifier(raw.get("error_file_id"))))
    result_refs = {name: ref for name, ref in named if ref is not None}
    status = _status(raw, raw_status, OUTPUT in result_refs, answered or 0)
    created_at, usage = read_time(raw.get("created_at")), raw.get("usage")
    return Snapshot(
        provider_id=provider_id,
        status=status,
        raw_status=raw_status,
        token=token_of(raw),
        input_ref=identifier(raw.get("input_file_id")),
        created_at=created_at,
        ended_at=_end_time(raw),
        window_ends_at=read_time(raw.get("expires_at")),
        results_until=created_at and created_at + RESULTS_KEPT,
        stopped=_stopped(raw_status),
        requests_done=done,
        requests_answered=answered,
        requests_total=total,
        result_refs=result_refs,
        results_pending=status is BatchStatus.ENDED and _owes_results(raw_status, result_refs, done, answered, total),
        complaints=tuple(_complaints(raw.get("errors"), raw.get("error"))),
        reported_usage=storable(usage) if isinstance(usage, Mapping) else None,
        raw=storable(raw),
    )


def _status(raw: Mapping[str, Any], raw_status: str, has_output: bool, answered: int) -> BatchStatus:
    status = status_of(raw_status)
    if status is BatchStatus.FAILED and (has_output or answered > 0):
        return BatchStatus.ENDED  # it died half-way: something was executed and is paid for
    if status is BatchStatus.UNKNOWN and has_output and _end_time(raw):
        return BatchStatus.ENDED  # whatever the word means: it names its end and its answers
    return status


def _stopped(raw_status: str) -> Stopped | None:
    bare = raw_status.strip().casefold()
    if bare.startswith("cancel"):
        return Stopped.CANCELLED
    return Stopped.EXPIRED if bare.startswith("expire") else None


def _owes_results(
    raw_status: str, refs: Mapping[str, str], done: int | None, answered: int | None, total: int | None
) -> bool:
    """A batch that has ended does not name a file that its own counts promise. Providers do not update their batch
    objects atomically, so it is asked again for a while."""
    if OUTPUT in refs:
        return False
    if answered:
        return True
    if ERROR in refs:
        return False
    failed = (done or 0) - (answered or 0)
    return failed > 0 or (raw_status.casefold() == "completed" and total != 0)


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


def _counts(value: object) -> tuple[int | None, int | None, int | None]:
    """Requests that are finished, those that brought an answer, and all."""
    if not isinstance(value, Mapping):
        return None, None, None
    answered, failed, total = (whole(value.get(name)) for name in ("completed", "failed", "total"))
    done = None if answered is None and failed is None else (answered or 0) + (failed or 0)
    return done, answered, total


def _complaints(*told: object) -> Iterable[Complaint]:
    """The complaints, as the API lists them; or as one object, or as text alone."""
    for errors in told:
        listed = errors.get("data") if isinstance(errors, Mapping) and "data" in errors else errors
        for entry in listed if isinstance(listed, list) else [listed]:
            if isinstance(entry, Mapping) and any(entry.get(name) for name in ("code", "type", "message")):
                yield Complaint(
                    code=word(entry.get("code")) or word(entry.get("type")) or "unknown",
                    message=prose(entry.get("message")) or "",
                    line=whole(entry.get("line")),
                    param=word(entry.get("param")) or "",
                    record_id=identifier(entry.get("custom_id")),
                )
            elif isinstance(entry, str) and entry.strip():
                yield Complaint(code="unknown", message=prose(entry) or "", line=None)
