"""What a client gets to see of message batches, as far as the fault plan lets the truth through."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from dev.practice_provider.batch_states import TERMINAL, BatchRow, Status
from dev.practice_provider.faults import FaultPlan, Listing

OTHERS_APART_S = 60  # between other people's batches


def has_ended(batch: BatchRow) -> bool:
    return Status(batch.status) in TERMINAL


def batch_shown(plan: FaultPlan, batch: BatchRow, base_url: str, archive_s: float, now: float) -> dict[str, Any]:
    """`base_url` ends without a slash. After `archive_s` from its creation a batch has no results any more."""
    ended, archived_at = has_ended(batch), batch.created_at + archive_s
    is_archived = ended and now >= archived_at
    ended_at = batch.completed_at or batch.expired_at or batch.cancelled_at
    results_url = f"{base_url}/v1/messages/batches/{batch.id}/results"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": _status(plan, batch),
        "request_counts": _counts(plan, batch),
        "created_at": _time(plan, batch.created_at),
        "expires_at": _time(plan, batch.expires_at),
        "ended_at": _time(plan, ended_at),
        "cancel_initiated_at": _time(plan, batch.cancelling_at),
        "archived_at": _time(plan, archived_at) if is_archived else None,
        "results_url": results_url if ended and not is_archived else None,
    }


def no_counts() -> dict[str, int]:
    return dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)


def listing_shown(
    plan: FaultPlan, odd: Listing, batches: Sequence[BatchRow], shown: Sequence[dict[str, Any]], now: float
) -> list[dict[str, Any]]:
    """The whole listing, in its order. `batches` are newest first, `shown` the same as they are seen."""
    newest, oldest = (batches[0].created_at, batches[-1].created_at) if batches else (now, now)
    later = [_other(plan, number, newest + 1) for number in range(odd.after)]
    earlier = [_other(plan, odd.after + number, oldest - (number + 1) * OTHERS_APART_S) for number in range(odd.before)]
    listed = later + earlier if odd.hidden else [*later, *shown, *earlier]
    return listed[::-1] if odd.order == "oldest first" else listed


def _status(plan: FaultPlan, batch: BatchRow) -> str:
    if has_ended(batch):
        return "ended"
    if plan.status_shown is not None:
        return plan.status_shown
    return "canceling" if batch.status == Status.CANCELLING else "in_progress"


def _counts(plan: FaultPlan, batch: BatchRow) -> dict[str, int]:
    """They always add up to the number of requests, and all are `processing` until the batch ends."""
    counts = no_counts()
    if not has_ended(batch):
        counts["processing"] = batch.total + plan.total_off
        return counts
    if plan.counts_lie:
        return counts | {"succeeded": batch.total + plan.total_off}
    rest = batch.total - batch.succeeded - batch.failed
    unfinished = "expired" if batch.status == Status.EXPIRED else "canceled"
    return counts | {
        "succeeded": batch.succeeded + plan.total_off,
        "errored": batch.failed,
        unfinished: rest,
    }


def _other(plan: FaultPlan, number: int, created_at: float) -> dict[str, Any]:
    ended_at = created_at + 30
    return {
        "id": f"msgbatch_other{number:06}",
        "type": "message_batch",
        "processing_status": "ended",
        "request_counts": no_counts() | {"succeeded": 1},
        "created_at": _time(plan, created_at),
        "expires_at": _time(plan, created_at + 24 * 3600),
        "ended_at": _time(plan, ended_at),
        "cancel_initiated_at": None,
        "archived_at": None,
        "results_url": None,
    }


def _time(plan: FaultPlan, at: float | None) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at - plan.clock_behind_s, UTC).isoformat().replace("+00:00", "Z")
