"""Provider batches: one uploaded file of requests each, from the intent to the collected results.

The order is always: commit intent -> upload -> commit the file id -> commit that a create call goes out -> create ->
commit the provider's id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Any

from psycopg import sql as composed
from psycopg.rows import class_row
from psycopg.types.json import Jsonb
from psycopg.types.multirange import Int8Multirange

from nightmill.domain.errors import IllegalTransition
from nightmill.domain.progress import requests_done
from nightmill.domain.snapshots import ERROR, OUTPUT, BatchStatus, Snapshot
from nightmill.domain.states import LIVE_PROVIDER_BATCH_STATES, PROVIDER_BATCH_EDGES, ProviderBatchState
from nightmill.domain.step_facts import Facts
from nightmill.storage import fence, sql
from nightmill.storage.ranges import multirange
from nightmill.storage.session import Connection, refusals

CANCELLED_WAIT_S = 2 * 3600.0  # a new run waits this long for the work that a cancelled one has at the provider
COMPLETION_WINDOW_S = 24 * 3600.0  # of the Batch API: what was sent before has ended there


@dataclass(frozen=True, slots=True)
class ProviderBatch:
    """One file of requests. Tokens are prompt tokens; `ordinals` are half-open ranges.

    `refused` says how the provider refused the whole file: `capacity` (no room now), `size` (too large), `named` (bad
    lines, by number or id) or `unnamed` (it does not say which); else None. `suspects` are groups of ordinals that the
    named lines may be. `counts` are the provider's own, at the last look. `taken_at` is when it was first seen past the
    provider's validation, `over_at` when it was seen to have ended, `unknown_since` since when its status is one that
    nobody knows, `stop_asked_at` when nightmill asked the provider to cancel it.
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
    input_file_id: str | None
    provider_id: str | None
    raw_status: str | None
    output_file_id: str | None
    error_file_id: str | None
    intent_at: datetime
    uploaded_at: datetime | None
    submitted_at: datetime | None
    ended_at: datetime | None
    refused: str | None
    counts: dict[str, int] | None
    suspects: list[list[int]] | None = None
    file_bytes: int = 0
    model: str = ""
    taken_at: datetime | None = None
    over_at: datetime | None = None
    unknown_since: datetime | None = None
    stop_asked_at: datetime | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", ProviderBatchState(self.state))

    @property
    def live(self) -> bool:
        """Whether its items may still be answered by it."""
        return self.state in LIVE_PROVIDER_BATCH_STATES

    @property
    def finished(self) -> int:
        """Requests that the provider finished, well or not; all of them where it does not count."""
        return requests_done(self.counts) if self.counts else self.requests

    @property
    def stopped_by_hand(self) -> bool:
        """Whether somebody else than nightmill cancelled it at the provider."""
        return (self.raw_status or "").casefold().startswith("cancel") and self.stop_asked_at is None

    def facts(self, *, is_probe: bool = False) -> Facts:
        """It as `next_step` reads it. `is_probe`: the account's other files wait for what becomes of it."""
        counts = self.counts
        return Facts(
            provider_batch_id=self.provider_batch_id,
            batch_id=self.batch_id,
            shard_id=self.shard_id,
            state=self.state,
            account=self.account,
            token=self.token,
            requests=self.requests,
            intent_at=self.intent_at,
            input_ref=self.input_file_id,
            create_at=self.uploaded_at,
            submitted_at=self.submitted_at,
            provider_id=self.provider_id,
            raw_status=self.raw_status,
            unknown_since=self.unknown_since,
            over_at=self.over_at,
            ended_at=self.ended_at,
            total=counts.get("total") if counts else None,
            finished=requests_done(counts) if counts else None,
            answered=counts.get("completed", 0) if counts else 0,
            answers_named=self.output_file_id is not None,
            errors_named=self.error_file_id is not None,
            stopped_by_hand=self.stopped_by_hand,
            is_probe=is_probe,
        )

    def carries(self) -> Iterable[int]:
        """Every ordinal it carries, in order."""
        for part in self.ordinals:
            yield from range(part.lower or 0, part.upper or 0)


@cache
def _returning(query: str) -> composed.Composed:
    """A query that returns provider batches: its columns are the fields of ProviderBatch, of the table named `one`."""
    columns = (composed.Identifier("one", field.name) for field in fields(ProviderBatch))
    return sql.text(query).format(columns=composed.SQL(", ").join(columns))


@dataclass(frozen=True, slots=True)
class Intent:
    """What is about to be sent. `account` is the connection's fingerprint; `enqueued_cap` is in prompt tokens."""

    job: str
    token: str
    account: str
    model: str
    ordinals: Sequence[int]
    prompt_tokens: int
    file_bytes: int
    enqueued_cap: int | None


def of_shard(conn: Connection, shard_id: int) -> list[ProviderBatch]:
    """All provider batches of a shard, oldest first."""
    with conn.cursor(row_factory=class_row(ProviderBatch)) as cursor:
        return cursor.execute(_returning("provider_batches_of_shard"), {"shard_id": shard_id}).fetchall()


def get(conn: Connection, provider_batch_id: int) -> ProviderBatch:
    """One provider batch. Raises IllegalTransition where there is none."""
    with conn.cursor(row_factory=class_row(ProviderBatch)) as cursor:
        row = cursor.execute(_returning("provider_batch_get"), {"provider_batch_id": provider_batch_id}).fetchone()
    if row is None:
        raise IllegalTransition(
            f"There is no provider batch {provider_batch_id}.", "Take its number from the task's log or the message."
        )
    return row


def carried_elsewhere(conn: Connection, batch_id: int, job: str, ordinals: Int8Multirange) -> set[int]:
    """Those of the ordinals whose key a live provider batch of another batch of the job carries, open or cancelled."""
    scope = {"batch_id": batch_id, "job": job, "cancelled_wait_s": CANCELLED_WAIT_S}
    others = conn.execute(sql.text("batches_in_flight"), scope).fetchall()
    found: set[int] = set()
    for other, carried in others:  # one query each: with constants it reads two partitions, nearly always none
        values = {"batch_id": batch_id, "ordinals": ordinals, "other": other, "carried": carried}
        found.update(row[0] for row in conn.execute(sql.text("keys_in_flight"), values))
    return found


def lock_sending(conn: Connection, job: str, account: str) -> None:
    """Serialise intents of one job and of one account, and what is learnt of its limits, until the transaction ends."""
    conn.execute(sql.text("lock_sending"), {"job": job, "account": account})


def enqueued_tokens(conn: Connection, account: str, model: str) -> int:
    """Prompt tokens of all live provider batches of a model on an account, those of cancelled batches included."""
    values = {"account": account, "model": model, "window_s": COMPLETION_WINDOW_S}
    row = conn.execute(sql.text("enqueued_tokens"), values).fetchone()
    return int(row[0]) if row else 0


def intend(conn: Connection, holder: fence.Holder, intent: Intent) -> ProviderBatch | None:
    """Record the intent to send, or return None when the account's enqueued-token budget has no room now.

    A file that is larger than the whole budget is let through alone: the provider says what it thinks of it.
    """
    fence.enter(conn, holder)
    lock_sending(conn, intent.job, intent.account)
    if intent.enqueued_cap is not None:
        waiting = enqueued_tokens(conn, intent.account, intent.model)
        if waiting and waiting + intent.prompt_tokens > intent.enqueued_cap:
            return None
    values = {
        "batch_id": holder.batch_id,
        "shard_id": holder.shard_id,
        "job": intent.job,
        "token": intent.token,
        "account": intent.account,
        "model": intent.model,
        "ordinals": multirange(intent.ordinals),
        "requests": len(intent.ordinals),
        "prompt_tokens": intent.prompt_tokens,
        "file_bytes": intent.file_bytes,
    }
    with refusals(), conn.cursor(row_factory=class_row(ProviderBatch)) as cursor:
        row = cursor.execute(_returning("provider_batch_intend"), values).fetchone()
    assert row is not None
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
    values = {"provider_batch_id": batch.provider_batch_id, "input_file_id": input_ref}
    with conn.cursor(row_factory=class_row(ProviderBatch)) as cursor:
        row = cursor.execute(_returning("provider_batch_record_file"), values).fetchone()
    if row is None:
        raise IllegalTransition(f"Provider batch {batch.provider_batch_id} is no longer INTENT.", "Read it again.")
    return row


def create_goes_out(conn: Connection, holder: fence.Holder, batch: ProviderBatch) -> ProviderBatch:
    """Its create call is about to leave: from here on it may have to be paid for."""
    return _edge(conn, holder, batch, ProviderBatchState.UPLOADED, "its create call goes out")


def created(
    conn: Connection,
    holder: fence.Holder,
    batch: ProviderBatch,
    provider_id: str,
    raw_status: str,
    *,
    adopted: bool = False,
    reason: str = "",
) -> ProviderBatch:
    """The provider has it under that id. `adopted`: its reply was lost, and it was found there."""
    reason = reason or ("adopted" if adopted else "created")
    facts = {"provider_id": provider_id, "adopted": adopted, "raw_status": raw_status}
    return _edge(conn, holder, batch, ProviderBatchState.SUBMITTED, reason, **facts)


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
        row = cursor.execute(_returning("provider_batch_move"), values).fetchone()
    if row is None:
        raise IllegalTransition(
            f"Provider batch {batch.provider_batch_id} is no longer {batch.state}.", "Read it again."
        )
    return row


_LEARNED = (
    "input_file_id",
    "provider_id",
    "adopted",
    "raw_status",
    "output_file_id",
    "error_file_id",
    "counts",
    "usage",
    "problems",
    "refused",
    "suspects",
)


def polled(
    conn: Connection, holder: fence.Holder, batch: ProviderBatch, seen: Snapshot, now: datetime
) -> ProviderBatch:
    """Note what the provider says just now, without an edge. Results that were named once stay named."""
    fence.enter(conn, holder)
    is_over, usage, counts = seen.status is BatchStatus.ENDED, seen.reported_usage, _counts(seen)
    values = {
        "provider_batch_id": batch.provider_batch_id,
        "raw_status": seen.raw_status,
        "counts": None if counts is None else Jsonb(counts),
        "output_file_id": seen.result_refs.get(OUTPUT),
        "error_file_id": seen.result_refs.get(ERROR),
        "usage": Jsonb(dict(usage)) if is_over and usage is not None else None,
        "made_at": seen.created_at,
        "taken_at": now if is_over or seen.status is BatchStatus.RUNNING else None,
        "over_at": now if is_over else None,
        "unknown_at": now if seen.status is BatchStatus.UNKNOWN else None,
    }
    with refusals(), conn.cursor(row_factory=class_row(ProviderBatch)) as cursor:
        return cursor.execute(_returning("provider_batch_poll"), values).fetchone() or batch


def _counts(seen: Snapshot) -> dict[str, int] | None:
    told = {
        "total": seen.requests_total,
        "completed": seen.requests_answered,
        "failed": None if seen.requests_done is None else seen.requests_done - (seen.requests_answered or 0),
    }
    return {name: count for name, count in told.items() if count is not None} or None


def note_stop_asked(conn: Connection, provider_batch_id: int) -> None:
    """Note, before the call, that it is nightmill that asks the provider to cancel it."""
    conn.execute(sql.text("provider_batch_ask_to_stop"), {"provider_batch_id": provider_batch_id})


def clock_behind(conn: Connection, account: str) -> timedelta:
    """How much earlier than ours the provider's clock was, at the least, when it made the last batches of an account;
    zero where it was not, or where nothing tells."""
    row = conn.execute(sql.text("provider_clock"), {"account": account}).fetchone()
    return max(timedelta(), -row[0]) if row and row[0] is not None else timedelta()


def any_of_batch(conn: Connection, batch_id: int) -> bool:
    """Whether anything was ever about to be sent for a batch."""
    row = conn.execute(sql.text("provider_batch_exists"), {"batch_id": batch_id}).fetchone()
    return bool(row and row[0])


def live_of_batch(conn: Connection, batch_id: int) -> int:
    """How many provider batches of a batch may still bring results."""
    row = conn.execute(sql.text("provider_batches_live"), {"batch_id": batch_id}).fetchone()
    return int(row[0]) if row else 0
