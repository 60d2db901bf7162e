"""Provider batches: one set of requests each, from the intent to the collected results.

The order is always: commit intent -> stage the requests -> commit their reference -> commit that a create call goes
out -> create -> commit the provider's id. Where the create call carries the requests, nothing is staged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Any, Protocol

from psycopg import sql as composed
from psycopg.rows import class_row
from psycopg.types.json import Jsonb
from psycopg.types.multirange import Int8Multirange

from nightmill.domain.errors import IllegalTransition
from nightmill.domain.snapshots import BatchStatus, Snapshot, Stopped, holds_answers
from nightmill.domain.states import LIVE_PROVIDER_BATCH_STATES, PROVIDER_BATCH_EDGES, ProviderBatchState
from nightmill.storage import fence, sql
from nightmill.storage.session import Connection, refusals


@dataclass(frozen=True, slots=True)
class ProviderBatch:
    """One file of requests. Tokens are prompt tokens; `ordinals` are half-open ranges.

    `refused` says how the provider refused the whole file: `capacity` (no room now), `size` (too large), `named` (bad
    lines, by number or id) or `unnamed` (it does not say which); else None. `suspects` are groups of ordinals that the
    named lines may be. `status` and `stopped` are the provider's word in ours, at the last look; so are the counts,
    None where it does not count. `result_refs` name the results that can be fetched.

    `creating_at` is when its create call went out, `taken_at` when it was first seen past the provider's validation,
    `over_at` when it was seen to have ended, `unknown_since` since when its status is one that nobody knows,
    `stop_asked_at` when nightmill asked the provider to cancel it. `window_ends_at` is when the provider ends it by
    itself, None for never or before its create call.
    """

    provider_batch_id: int
    batch_id: int
    shard_id: int
    state: ProviderBatchState
    token: str
    account: str
    ordinals: Int8Multirange
    requests: int
    prompt_tokens: int
    input_ref: str | None
    provider_id: str | None
    raw_status: str | None
    intent_at: datetime
    creating_at: datetime | None
    submitted_at: datetime | None
    ended_at: datetime | None
    refused: str | None
    suspects: list[list[int]] | None = None
    file_bytes: int = 0
    model: str = ""
    adapter: str = ""
    status: BatchStatus | None = None
    stopped: Stopped | None = None
    requests_done: int | None = None
    requests_answered: int | None = None
    requests_total: int | None = None
    result_refs: dict[str, str] = field(default_factory=dict)
    window_ends_at: datetime | None = None
    results_until: datetime | None = None
    taken_at: datetime | None = None
    over_at: datetime | None = None
    unknown_since: datetime | None = None
    stop_asked_at: datetime | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", ProviderBatchState(self.state))
        object.__setattr__(self, "status", self.status and BatchStatus(self.status))
        object.__setattr__(self, "stopped", self.stopped and Stopped(self.stopped))

    @property
    def live(self) -> bool:
        """Whether its items may still be answered by it."""
        return self.state in LIVE_PROVIDER_BATCH_STATES

    @property
    def finished(self) -> int:
        """Requests that the provider finished, well or not; all of them where it does not count."""
        return self.requests if self.requests_done is None else self.requests_done

    @property
    def names_answers(self) -> bool:
        """Whether results that can hold answers can be fetched."""
        return any(map(holds_answers, self.result_refs))

    @property
    def stopped_by_hand(self) -> bool:
        """Whether somebody else than nightmill cancelled it at the provider."""
        return self.stopped is Stopped.CANCELLED and self.stop_asked_at is None

    def carries(self) -> Iterable[int]:
        """Every ordinal it carries, in order."""
        for part in self.ordinals:
            yield from range(part.lower or 0, part.upper or 0)


@cache
def returning(query: str) -> composed.Composed:
    """A query that returns provider batches: its columns are the fields of ProviderBatch, of the table named `one`."""
    columns = (composed.Identifier("one", one.name) for one in fields(ProviderBatch))
    return sql.text(query).format(columns=composed.SQL(", ").join(columns))


def of_shard(conn: Connection, shard_id: int) -> list[ProviderBatch]:
    """All provider batches of a shard, oldest first."""
    with conn.cursor(row_factory=class_row(ProviderBatch)) as cursor:
        return cursor.execute(returning("provider_batch/of_shard"), {"shard_id": shard_id}).fetchall()


def get(conn: Connection, provider_batch_id: int) -> ProviderBatch:
    """One provider batch. Raises IllegalTransition where there is none."""
    with conn.cursor(row_factory=class_row(ProviderBatch)) as cursor:
        row = cursor.execute(returning("provider_batch/get"), {"provider_batch_id": provider_batch_id}).fetchone()
    if row is None:
        raise IllegalTransition(
            f"There is no provider batch {provider_batch_id}.", "Take its number from the task's log or the message."
        )
    return row


class Refusal(StrEnum):
    """How a provider refused a whole file."""

    CAPACITY = "capacity"  # no room now
    SIZE = "size"  # too large
    NAMED = "named"  # for lines that it names, by number or id
    UNNAMED = "unnamed"  # it does not say for which


def staged(conn: Connection, holder: fence.Holder, batch: ProviderBatch, input_ref: str) -> ProviderBatch:
    """Note under which reference the provider has its requests. Raises IllegalTransition unless it is INTENT."""
    fence.enter(conn, holder)
    values = {"provider_batch_id": batch.provider_batch_id, "input_ref": input_ref}
    with conn.cursor(row_factory=class_row(ProviderBatch)) as cursor:
        row = cursor.execute(returning("provider_batch/record_input"), values).fetchone()
    if row is None:
        raise IllegalTransition(f"Provider batch {batch.provider_batch_id} is no longer INTENT.", "Read it again.")
    return row


def create_goes_out(
    conn: Connection, holder: fence.Holder, batch: ProviderBatch, window_ends_at: datetime | None = None
) -> ProviderBatch:
    """Its create call is about to leave: from here on it may have to be paid for."""
    reason = "its create call goes out"
    return _edge(conn, holder, batch, ProviderBatchState.CREATING, reason, window_ends_at=window_ends_at)


class Accepted(Protocol):
    """What the provider says of a batch that it has."""

    @property
    def provider_id(self) -> str: ...
    @property
    def raw_status(self) -> str: ...
    @property
    def window_ends_at(self) -> datetime | None: ...
    @property
    def results_until(self) -> datetime | None: ...


def created(
    conn: Connection, holder: fence.Holder, batch: ProviderBatch, there: Accepted, why: str = "created"
) -> ProviderBatch:
    """The provider has it under that id. Where its reply was lost and it was found there, `why` says how."""
    facts = {
        "provider_id": there.provider_id,
        "adopted": why != "created",
        "raw_status": there.raw_status,
        "window_ends_at": there.window_ends_at,
        "results_until": there.results_until,
    }
    return _edge(conn, holder, batch, ProviderBatchState.SUBMITTED, why, **facts)


def ended(conn: Connection, holder: fence.Holder, batch: ProviderBatch) -> ProviderBatch:
    """The provider executes nothing more of it."""
    return _edge(conn, holder, batch, ProviderBatchState.ENDED, f"the provider says {batch.raw_status}")


def collected(conn: Connection, holder: fence.Holder, batch: ProviderBatch, told: str = "") -> ProviderBatch:
    """All of its results are in the ledger. `told` is what its results, its counts and what was sent say of each
    other, where they do not agree."""
    return _edge(conn, holder, batch, ProviderBatchState.COLLECTED, told or "every line is in the ledger")


def abandoned(
    conn: Connection,
    holder: fence.Holder,
    batch: ProviderBatch,
    why: str,
    refused: Refusal | None = None,
    suspects: Sequence[Sequence[int]] | None = None,
) -> ProviderBatch:
    """It is given up; its items are free again. `suspects` are groups of ordinals that the refusal's lines may be."""
    groups = [list(group) for group in suspects] if suspects else None
    return _edge(conn, holder, batch, ProviderBatchState.ABANDONED, why, refused=refused, suspects=groups)


def _edge(
    conn: Connection, holder: fence.Holder, batch: ProviderBatch, to: ProviderBatchState, reason: str, **facts: Any
) -> ProviderBatch:
    """Take one edge under the shared fence and record what was learned with it (column names as keywords)."""
    if to not in PROVIDER_BATCH_EDGES[batch.state]:
        raise IllegalTransition(
            f"Provider batch {batch.provider_batch_id} cannot go from {batch.state} to {to}.", "Read it again."
        )
    fence.enter(conn, holder)
    values = {
        "provider_batch_id": batch.provider_batch_id,
        "from_state": str(batch.state),
        "to_state": str(to),
        "reason": reason,
        **dict.fromkeys(_LEARNED),
        **{name: Jsonb(value) if isinstance(value, list) else value for name, value in facts.items()},
    }
    with refusals(), conn.cursor(row_factory=class_row(ProviderBatch)) as cursor:
        row = cursor.execute(returning("provider_batch/move"), values).fetchone()
    if row is None:
        raise IllegalTransition(
            f"Provider batch {batch.provider_batch_id} is no longer {batch.state}.", "Read it again."
        )
    return row


_LEARNED = (
    "input_ref",
    "provider_id",
    "adopted",
    "raw_status",
    "result_refs",
    "window_ends_at",
    "results_until",
    "refused",
    "suspects",
)


def polled(
    conn: Connection, holder: fence.Holder, batch: ProviderBatch, seen: Snapshot, now: datetime
) -> ProviderBatch:
    """Note what the provider says just now, without an edge. What was named or counted once stays so until it says
    something else; what it used counts from its end on."""
    fence.enter(conn, holder)
    over, usage = seen.status is BatchStatus.ENDED, seen.reported_usage
    values = {
        "provider_batch_id": batch.provider_batch_id,
        "raw_status": seen.raw_status,
        "status": str(seen.status),
        "stopped": seen.stopped and str(seen.stopped),
        "requests_done": seen.requests_done,
        "requests_answered": seen.requests_answered,
        "requests_total": seen.requests_total,
        "result_refs": Jsonb(dict(seen.result_refs)),
        "usage": Jsonb(dict(usage)) if over and usage is not None else None,
        "window_ends_at": seen.window_ends_at,
        "results_until": seen.results_until,
        "made_at": seen.created_at,
        "taken_at": now if over or seen.status is BatchStatus.RUNNING else None,
        "over_at": now if over else None,
        "unknown_at": now if seen.status is BatchStatus.UNKNOWN else None,
    }
    with refusals(), conn.cursor(row_factory=class_row(ProviderBatch)) as cursor:
        return cursor.execute(returning("provider_batch/poll"), values).fetchone() or batch


def note_stop_asked(conn: Connection, provider_batch_id: int) -> None:
    """Note, before the call, that it is nightmill that asks the provider to cancel it."""
    conn.execute(sql.text("provider_batch/ask_to_stop"), {"provider_batch_id": provider_batch_id})


def clock_behind(conn: Connection, account: str) -> timedelta:
    """How much earlier than ours the provider's clock was, at the least, when it made the last batches of an account;
    zero where it was not, or where nothing tells."""
    row = conn.execute(sql.text("provider_batch/clock_lag"), {"account": account}).fetchone()
    return max(timedelta(), -row[0]) if row and row[0] is not None else timedelta()


def any_of_batch(conn: Connection, batch_id: int) -> bool:
    """Whether anything was ever about to be sent for a batch."""
    row = conn.execute(sql.text("provider_batch/exists"), {"batch_id": batch_id}).fetchone()
    return bool(row and row[0])


def live_of_batch(conn: Connection, batch_id: int) -> int:
    """How many provider batches of a batch may still bring results."""
    row = conn.execute(sql.text("provider_batch/count_open"), {"batch_id": batch_id}).fetchone()
    return int(row[0]) if row else 0
