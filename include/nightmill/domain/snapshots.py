"""What a provider says of one of its batches, and what a lookup of a lost create call found, in our own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class BatchStatus(StrEnum):
    """Where a provider's batch stands. ENDED means that nothing more will be executed, however it ended."""

    WAITING = "waiting"  # accepted or being validated, nothing executed yet
    RUNNING = "running"  # executing, finalising or being cancelled
    ENDED = "ended"  # completed, expired or cancelled: results may exist, partial ones too
    FAILED = "failed"  # refused as a whole by the provider's validation: nothing was executed
    UNKNOWN = "unknown"  # a status word that the adapter does not know: stop spending, keep the raw value


class Stopped(StrEnum):
    """Why a batch may leave requests unanswered."""

    CANCELLED = "cancelled"  # somebody asked the provider to stop it; also while it is still stopping
    EXPIRED = "expired"  # its window ran out


@dataclass(frozen=True, slots=True)
class Complaint:
    """One complaint of the provider's validation about a batch's requests. `line` is the number of a line: most
    providers count from 1, some from 0; None = the batch as a whole. `record_id` is the request it names beside its
    message. `param` is what it speaks of, such as `completion_window`; empty where it does not say."""

    code: str
    message: str
    line: int | None
    param: str = ""
    record_id: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A provider's batch as it answered just now. Strings are clean and short; ids are as they are kept
    (`cleaning.identifier`), and the adapter takes them so.

    `token` is our own, read back where the provider keeps one. `requests_done` counts those that are finished, well or
    not, `requests_answered` those that brought an answer (paid), `requests_total` all; None where it does not count.
    Progress only, never proof. `result_refs` names the results that can be fetched, by our name for each: see
    `holds_answers`. `results_pending`: it says that it ended, and its own counts promise results that it does not name
    so far. `reported_usage` is what it says of the whole batch's tokens, in its own words. `raw` is all it said, as far
    as jsonb can hold it.
    """

    provider_id: str
    status: BatchStatus
    raw_status: str
    token: str | None = None
    input_ref: str | None = None
    created_at: datetime | None = None
    ended_at: datetime | None = None
    window_ends_at: datetime | None = None
    results_until: datetime | None = None
    stopped: Stopped | None = None
    requests_done: int | None = None
    requests_answered: int | None = None
    requests_total: int | None = None
    result_refs: Mapping[str, str] = field(default_factory=dict)
    results_pending: bool = False
    complaints: Sequence[Complaint] = ()
    reported_usage: Mapping[str, Any] | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)


OUTPUT, ERROR = "output", "error"  # names of results: the answers (and whatever stands among them), errors alone


def holds_answers(name: str) -> bool:
    """Whether the results of that name can hold answers; those that begin with `error` hold none."""
    return not name.startswith(ERROR)


@dataclass(frozen=True, slots=True)
class Found:
    """The lost create was taken. `others` are further batches that carry the same token."""

    snapshot: Snapshot
    others: Sequence[Snapshot] = ()


@dataclass(frozen=True, slots=True)
class Absent:
    """Everything back to the create call was read, and it is not there. Before the absence grace is over this proves
    nothing."""


@dataclass(frozen=True, slots=True)
class Unclear:
    """It can be told neither way. `why` completes "whether the provider took it cannot be told: ...". `candidates` may
    be it: what proves one of them comes with its end. `can_change` is False where looking again tells no more."""

    why: str
    candidates: Sequence[Snapshot] = ()
    can_change: bool = True


LookupResult = Found | Absent | Unclear
