"""Reads the message batch objects of Anthropic's API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from nightmill.domain.snapshots import OUTPUT, BatchStatus, Snapshot, Stopped
from nightmill.providers.cleaning import identifier, storable, whole, word
from nightmill.providers.json_answers import MalformedAnswerError, read_time

PAGE_SIZE = 1000  # the most that a listing gives at once
RESULTS_KEPT = timedelta(days=29)  # after creation; docs, "Batch processing"
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")
_STATUSES = {
    "in_progress": BatchStatus.RUNNING,
    "canceling": BatchStatus.RUNNING,
    "ended": BatchStatus.ENDED,
}


def batch_snapshot(raw: Mapping[str, Any]) -> Snapshot:
    """The batch object in our words. Raises MalformedAnswerError when it is none.

    Its counts add up to the number of requests at any time, and all are `processing` until it ends. Counts of nothing
    are not believed: a batch has one request at the least.
    """
    provider_id, raw_status = identifier(raw.get("id")), word(raw.get("processing_status"))
    if raw.get("type") == "message_batch" and raw_status is None:
        raw_status = "unreadable"
    if raw.get("type") not in ("message_batch", None) or provider_id is None or raw_status is None:
        raise MalformedAnswerError("no message batch object")
    counts = _counts(raw.get("request_counts"))
    total = sum(counts.values())
    status = status_of(raw_status)
    created_at = read_time(raw.get("created_at"))
    has_results = isinstance(raw.get("results_url"), str)
    return Snapshot(
        provider_id=provider_id,
        status=status,
        raw_status=raw_status,
        created_at=created_at,
        ended_at=read_time(raw.get("ended_at")),
        window_ends_at=read_time(raw.get("expires_at")),
        results_until=created_at and created_at + RESULTS_KEPT,
        stopped=_stopped(raw, counts),
        requests_done=total - counts["processing"] if total else None,
        requests_answered=counts["succeeded"] if total else None,
        requests_total=total or None,
        result_refs={OUTPUT: provider_id} if has_results else {},
        results_pending=status is BatchStatus.ENDED and not has_results and raw.get("archived_at") is None,
        raw=storable(raw),
    )


def status_of(raw_status: str) -> BatchStatus:
    """Our word for a processing status; UNKNOWN for one that is not documented."""
    return _STATUSES.get(raw_status.strip().casefold(), BatchStatus.UNKNOWN)


def _stopped(raw: Mapping[str, Any], counts: Mapping[str, int]) -> Stopped | None:
    if raw.get("cancel_initiated_at") is not None or counts["canceled"]:
        return Stopped.CANCELLED
    return Stopped.EXPIRED if counts["expired"] else None


def _counts(value: object) -> dict[str, int]:
    told = value if isinstance(value, Mapping) else {}
    return {name: whole(told.get(name)) or 0 for name in _COUNTS}
