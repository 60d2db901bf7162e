"""A batch's life at the provider, and the pure decision of its next step.

validating -> in_progress -> finalizing -> completed, with the exits failed (from validating), expired and
cancelling -> cancelled. Source: OpenAI's batch guide, "Checking the status of a batch". Other vendors show less of it:
a batch that is checked at create begins in_progress.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dev.practice_provider.faults import FaultPlan


class Status(StrEnum):
    VALIDATING = "validating"
    IN_PROGRESS = "in_progress"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


EDGES: dict[Status, frozenset[Status]] = {
    Status.VALIDATING: frozenset({Status.IN_PROGRESS, Status.FAILED, Status.EXPIRED, Status.CANCELLING}),
    Status.IN_PROGRESS: frozenset({Status.FINALIZING, Status.EXPIRED, Status.CANCELLING}),
    Status.FINALIZING: frozenset({Status.COMPLETED, Status.CANCELLING}),
    Status.CANCELLING: frozenset({Status.CANCELLED}),
    Status.COMPLETED: frozenset(),
    Status.FAILED: frozenset(),
    Status.EXPIRED: frozenset(),
    Status.CANCELLED: frozenset(),
}
TERMINAL = frozenset(status for status, exits in EDGES.items() if not exits)

VALIDATING_SHARE = 0.1  # of the batch's whole duration
FINALIZING_SHARE = 0.1
PROGRESS_STEPS = 24  # a commit for every line of many waiting batches would cost a core


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One row of `batch`; see schema.sql."""

    seq: int
    id: str
    status: str
    endpoint: str
    input_file_id: str
    metadata: str | None
    created_at: float
    expires_at: float
    output_expires_s: int | None
    in_progress_at: float | None
    finalizing_at: float | None
    completed_at: float | None
    failed_at: float | None
    expired_at: float | None
    cancelling_at: float | None
    cancelled_at: float | None
    model: str | None
    validated: int
    enqueued_tokens: int
    total: int
    done: int
    succeeded: int
    failed: int
    input_tokens: int
    output_tokens: int
    output_bytes: int
    error_bytes: int
    output_file_id: str | None
    error_file_id: str | None
    problems: str | None


def stem(batch_id: str) -> str:
    """What is left of a batch's id without its prefix; names what belongs to the batch."""
    return batch_id.partition("_")[2]


@dataclass(frozen=True, slots=True)
class Validate:
    pass


@dataclass(frozen=True, slots=True)
class Move:
    to: Status


@dataclass(frozen=True, slots=True)
class Execute:
    """Execute lines until `due` of them are done."""

    due: int


@dataclass(frozen=True, slots=True)
class Finish:
    to: Status


@dataclass(frozen=True, slots=True)
class Wait:
    pass


Step = Validate | Move | Execute | Finish | Wait


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds from create to end, and seconds that a batch stays `cancelling`."""

    batch_s: float
    cancel_s: float


def next_step(batch: BatchRow, now: float, pace: Pace, plan: FaultPlan, stop_at: int | None = None) -> Step:
    """What an unfinished batch does now. A hold stops neither expiry nor cancelling.

    `stop_at`: the batch expires once so many of its lines are executed.
    """
    status = Status(batch.status)
    if status == plan.stuck and (batch.validated or status is Status.CANCELLING):
        return Wait()
    if status is Status.CANCELLING:
        since = batch.cancelling_at if batch.cancelling_at is not None else now
        return Finish(Status.CANCELLED) if now >= since + pace.cancel_s else Wait()
    if not batch.validated:
        return Validate()
    if status in (Status.VALIDATING, Status.IN_PROGRESS) and now >= batch.expires_at:
        return Finish(Status.EXPIRED)
    if status is Status.VALIDATING:
        return Move(Status.IN_PROGRESS) if now >= batch.created_at + VALIDATING_SHARE * pace.batch_s else Wait()
    if status is Status.IN_PROGRESS:
        if stop_at is not None and batch.done >= stop_at:
            return Finish(Status.EXPIRED)
        due = due_lines(batch, now, pace, plan)
        if stop_at is not None:
            due = min(due, stop_at)
        if batch.done < due:
            return Execute(due)
        over = batch.done == batch.total and now >= batch.created_at + (1 - FINALIZING_SHARE) * pace.batch_s
        return Move(Status.FINALIZING) if over and not plan.hold else Wait()
    return Finish(Status.COMPLETED) if now >= batch.created_at + pace.batch_s else Wait()


def due_lines(batch: BatchRow, now: float, pace: Pace, plan: FaultPlan) -> int:
    """How many lines should be done by `now`, so that progress is even over the time in progress, in steps."""
    start = batch.in_progress_at if batch.in_progress_at is not None else now
    end = batch.created_at + (1 - FINALIZING_SHARE) * pace.batch_s
    due = (
        batch.total
        if now >= end or end <= start
        else batch.total * int(PROGRESS_STEPS * (now - start) / (end - start)) // PROGRESS_STEPS
    )
    if plan.hold and plan.hold_after is not None:
        due = min(due, plan.hold_after)
    return due
