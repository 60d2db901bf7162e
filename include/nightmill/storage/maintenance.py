"""What maintenance asks the ledger, and the log of what it did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from nightmill.domain.deadlines import InState
from nightmill.domain.maintenance import Action, Sweep, not_done
from nightmill.domain.snapshots import BatchStatus, Stopped
from nightmill.domain.states import ProviderBatchState
from nightmill.storage import sql
from nightmill.storage.session import Connection


@dataclass(frozen=True, slots=True)
class LastSeen:
    """An open batch and when anything was last heard of it; ahead of now while a shard of it waits."""

    batch_id: int
    job: str
    contract_id: int
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class Followed:
    """A live provider batch of an open batch. `since` is when it entered its state."""

    provider_batch_id: int
    batch_id: int
    shard_id: int
    state: ProviderBatchState
    provider_id: str | None
    raw_status: str | None
    status: BatchStatus | None
    stopped: Stopped | None
    since: datetime
    window_ends_at: datetime | None
    contract_id: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", ProviderBatchState(self.state))
        object.__setattr__(self, "status", self.status and BatchStatus(self.status))
        object.__setattr__(self, "stopped", self.stopped and Stopped(self.stopped))

    @property
    def in_state(self) -> InState:
        return InState(self.state, self.since, self.raw_status, self.status, self.stopped, self.window_ends_at)


@dataclass(frozen=True, slots=True)
class OverdueShard:
    """A shard of a running batch that nobody woke in time."""

    shard_id: int
    batch_id: int
    wake_at: datetime


@dataclass(frozen=True, slots=True)
class StalledShard:
    """A shard of a running batch that waits, with nothing at the provider. `since` is its last progress."""

    shard_id: int
    batch_id: int
    state_reason: str
    since: datetime


@dataclass(frozen=True, slots=True)
class KnownToken:
    """Whose a token is that a batch at the provider carries."""

    token: str
    state: ProviderBatchState
    provider_id: str | None
    batch_id: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", ProviderBatchState(self.state))


@contextmanager
def isolated(
    done: list[Action], sweep: Sweep, batch_id: int | None = None, *, unit: str = "", conn: Connection | None = None
) -> Iterator[None]:
    """One job, batch or shard of a sweep: a fault of it is reported among what was done, and stops no other one.

    `conn` is what the sweep goes on with; where that connection is lost, the fault ends the sweep.
    """
    try:
        yield
    except Exception as fault:
        if conn is not None:
            if conn.closed:
                raise
            conn.rollback()
        done.append(not_done(sweep, fault, batch_id, unit, passed_by=__file__))


def last_seen(conn: Connection) -> list[LastSeen]:
    """Every open batch."""
    with conn.cursor(row_factory=class_row(LastSeen)) as cursor:
        return cursor.execute(sql.text("batch/last_seen")).fetchall()


def followed(conn: Connection) -> list[Followed]:
    """Every live provider batch of an open batch."""
    with conn.cursor(row_factory=class_row(Followed)) as cursor:
        return cursor.execute(sql.text("provider_batch/followed")).fetchall()


def overdue_shards(conn: Connection, before: datetime) -> list[OverdueShard]:
    """Shards of running batches whose wake-up time passed before a moment."""
    with conn.cursor(row_factory=class_row(OverdueShard)) as cursor:
        return cursor.execute(sql.text("shard/overdue"), {"before": before}).fetchall()


def stalled_shards(conn: Connection, before: datetime) -> list[StalledShard]:
    """Waiting shards of running batches that made no progress since a moment."""
    with conn.cursor(row_factory=class_row(StalledShard)) as cursor:
        return cursor.execute(sql.text("shard/stalled"), {"before": before}).fetchall()


def known_tokens(conn: Connection, tokens: Sequence[str]) -> dict[str, KnownToken]:
    """Those of the tokens that this ledger gave out."""
    with conn.cursor(row_factory=class_row(KnownToken)) as cursor:
        rows = cursor.execute(sql.text("provider_batch/by_token"), {"tokens": list(tokens)}).fetchall()
    return {one.token: one for one in rows}


@dataclass(frozen=True, slots=True)
class Standing:
    """When the sweep that ran least lately did, when the first batch was made, and the alerts of the last day."""

    oldest_sweep: datetime | None
    oldest_batch: datetime | None
    alerts: int


def standing(conn: Connection) -> Standing:
    """Whether maintenance runs at all."""
    with conn.cursor(row_factory=class_row(Standing)) as cursor:
        row = cursor.execute(sql.text("maintenance/standing")).fetchone()
    assert row is not None
    return row


def note_sweep(conn: Connection, sweep: Sweep) -> None:
    """Note that a sweep came to its end."""
    conn.execute(sql.text("maintenance/note_sweep"), {"sweep": str(sweep)})


def record(conn: Connection, actions: Iterable[Action]) -> None:
    """Keep what was done."""
    rows = [
        {"sweep": str(one.sweep), "batch_id": one.batch_id, "what": one.what, "alert": one.alert} for one in actions
    ]
    with conn.cursor() as cursor:
        cursor.executemany(sql.text("maintenance/record"), rows)
