"""What a client gets to see of batches, files and the clock, as far as the fault plan lets the truth through."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dev.practice_provider.batch_states import TERMINAL, BatchRow, Status
from dev.practice_provider.faults import FaultPlan, Listing
from dev.practice_provider.file_store import StoredFile

_TIMES = (
    *("created_at", "in_progress_at", "expires_at", "finalizing_at", "completed_at"),
    *("failed_at", "expired_at", "cancelling_at", "cancelled_at"),
)
OTHERS_APART_S = 60  # between other people's batches


def batch_json(batch: BatchRow) -> dict[str, Any]:
    times = {name: None if (at := getattr(batch, name)) is None else int(at) for name in _TIMES}
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "model": batch.model,
        "errors": {"object": "list", "data": json.loads(batch.problems)} if batch.problems else None,
        "input_file_id": batch.input_file_id,
        "completion_window": "24h",
        "status": batch.status,
        "output_file_id": batch.output_file_id,
        "error_file_id": batch.error_file_id,
        **times,
        "request_counts": {"total": batch.total, "completed": batch.succeeded, "failed": batch.failed},
        "usage": _usage(batch) if batch.status in TERMINAL - {Status.FAILED} else None,
        "metadata": json.loads(batch.metadata) if batch.metadata else None,
    }


def _usage(batch: BatchRow) -> dict[str, Any]:
    return {
        "input_tokens": batch.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": batch.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": batch.input_tokens + batch.output_tokens,
    }


def batch_shown(plan: FaultPlan, batch: BatchRow) -> dict[str, Any]:
    told = batch_json(batch)
    if plan.status_shown is not None and Status(batch.status) not in TERMINAL:
        told["status"] = plan.status_shown
    if plan.counts_lie:
        told["request_counts"] = {"total": batch.total, "completed": batch.total, "failed": 0}
    if plan.total_off:
        told["request_counts"]["total"] += plan.total_off
    if plan.usage_shown is not None and told["usage"] is not None:
        cached = {"input_tokens_details": {"cached_tokens": batch.input_tokens + 1_024}}
        told["usage"] = told["usage"] | cached if plan.usage_shown == "impossible" else None
    return _by_clock(plan, told)


def file_shown(plan: FaultPlan, file: StoredFile) -> dict[str, Any]:
    return _by_clock(plan, file.as_json())


def listing_shown(plan: FaultPlan, odd: Listing, batches: Sequence[BatchRow]) -> list[dict[str, Any]]:
    """The whole listing, in its order; `batches` are newest first."""
    ours = [batch_shown(plan, one) for one in batches]
    newest = ours[0]["created_at"] if ours else 0
    oldest = ours[-1]["created_at"] if ours else 0
    others = [_other(number, newest + 1) for number in range(odd.after)]
    older = [_other(odd.after + number, oldest - (number + 1) * OTHERS_APART_S) for number in range(odd.before)]
    listed = others + older if odd.hidden else others + ours + older
    return listed[::-1] if odd.order == "oldest first" else listed


def _other(number: int, created_at: int) -> dict[str, Any]:
    return {
        "id": f"batch_other{number:06}",
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "input_file_id": f"file-other{number:06}",
        "completion_window": "24h",
        "status": "completed",
        "output_file_id": None,
        "error_file_id": None,
        "created_at": created_at,
        "request_counts": {"total": 1, "completed": 1, "failed": 0},
        "metadata": None,
    }


def _by_clock(plan: FaultPlan, told: dict[str, Any]) -> dict[str, Any]:
    if not plan.clock_behind_s:
        return told
    late = int(plan.clock_behind_s)
    return {name: at - late if name.endswith("_at") and at is not None else at for name, at in told.items()}
