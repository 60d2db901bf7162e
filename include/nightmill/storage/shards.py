"""Shards: contiguous ranges of a batch's items, each driven by one task at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row
from psycopg.types.multirange import Int8Multirange

from nightmill.domain.errors import IllegalTransition, StaleWriter
from nightmill.domain.states import SHARD_EDGES, TERMINAL_SHARD_STATES, ShardState
from nightmill.storage import fence, sql
from nightmill.storage.session import Connection, refusals


@dataclass(frozen=True, slots=True)
class Shard:
    """Items first_ordinal..last_ordinal, both included. `items` and `prompt_tokens` are as planned."""

    shard_id: int
    batch_id: int
    first_ordinal: int
    last_ordinal: int
    items: int
    prompt_tokens: int
    state: ShardState
    lease: int
    wake_at: datetime | None
    hold_until: datetime | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", ShardState(self.state))

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do."""
        return self.state in TERMINAL_SHARD_STATES


@dataclass(frozen=True, slots=True)
class NewShard:
    """A range to store. `ordinals` hold all its unsettled items, and as few others as is cheap to tell."""

    first_ordinal: int
    last_ordinal: int
    ordinals: Int8Multirange
    items: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class ShardLabel:
    """What a person sees of a shard in the UI."""

    shard_id: int
    tenants: str
    items: int
    prompt_tokens: int


def replace(conn: Connection, batch_id: int, shards: Iterable[NewShard]) -> None:
    """Store a plan in place of one that nothing was sent for yet."""
    with refusals():
        conn.execute(sql.text("shard/delete"), {"batch_id": batch_id})
    with conn.cursor() as cursor:
        cursor.executemany(
            sql.text("shard/add"),
            [{"batch_id": batch_id, **{n: getattr(s, n) for n in NewShard.__slots__}} for s in shards],
        )


def get(conn: Connection, shard_id: int) -> Shard:
    """One shard. Raises IllegalTransition when the plan that made it was replaced."""
    with conn.cursor(row_factory=class_row(Shard)) as cursor:
        row = cursor.execute(sql.text("shard/get"), {"shard_id": shard_id}).fetchone()
    if row is None:
        raise IllegalTransition(
            f"There is no shard {shard_id}: the batch was planned anew.",
            "Clear preflight together with its downstream tasks, so that run_shard maps over the new plan.",
        )
    return row


def unsettled(conn: Connection, shard: Shard) -> list[tuple[int, int]]:
    """(ordinal, prompt tokens) of a shard's items that have no outcome yet, in order."""
    return conn.execute(sql.text("shard/unsettled"), _scope(shard)).fetchall()


def any_unsettled(conn: Connection, shard: Shard) -> bool:
    """Whether an item of a shard has no outcome yet; looks no further than the first."""
    query = sql.text("shard/any_unsettled").format(unsettled=sql.text("shard/unsettled"))
    row = conn.execute(query, _scope(shard)).fetchone()
    return bool(row and row[0])


def _scope(shard: Shard) -> dict[str, int]:
    return {"batch_id": shard.batch_id, "shard_id": shard.shard_id}


def labels(conn: Connection, batch_id: int) -> Sequence[ShardLabel]:
    """The shards of a batch that are not settled yet, in order, with what the UI shows of them."""
    with conn.cursor(row_factory=class_row(ShardLabel)) as cursor:
        return cursor.execute(sql.text("shard/labels"), {"batch_id": batch_id}).fetchall()


def to_wind_down(conn: Connection, batch_id: int | None) -> list[tuple[int, int]]:
    """(shard, batch) of what cancelled batches, or one of them, still have at the provider."""
    return conn.execute(sql.text("shard/to_wind_down"), {"batch_id": batch_id}).fetchall()


def count_by_state(conn: Connection, batch_id: int) -> dict[str, int]:
    """Shards per state."""
    return dict(conn.execute(sql.text("shard/count_by_state"), {"batch_id": batch_id}).fetchall())


def take_over(conn: Connection, shard: Shard, generation: int, reason: str) -> tuple[Shard, fence.Holder]:
    """Take a shard at wake-up: raises its lease, so that whoever held it before can write no more.

    Runs under the exclusive fence: a chunk that an older holder is committing is waited for, its next one refused.
    """
    holder = fence.Holder(shard.batch_id, generation)
    fence.enter_exclusive(conn, holder)
    to_state = ShardState.RUNNING if not shard.ended else shard.state
    with refusals(), conn.cursor(row_factory=class_row(Shard)) as cursor:
        taken = cursor.execute(
            sql.text("shard/take_over"),
            {"shard_id": shard.shard_id, "lease": shard.lease, "state": str(to_state), "reason": reason},
        ).fetchone()
    if taken is None:
        raise StaleWriter(f"Shard {shard.shard_id} was taken by somebody else just now.", "Nothing to do.")
    return taken, fence.Holder(shard.batch_id, generation, shard.shard_id, taken.lease)


def settled(conn: Connection, shard: Shard, holder: fence.Holder) -> Shard:
    """Every item has its outcome."""
    return _edge(conn, shard, holder, ShardState.SETTLED, "every item is settled")


def waits(
    conn: Connection,
    shard: Shard,
    holder: fence.Holder,
    reason: str,
    *,
    is_at_provider: bool,
    wake_in_s: float | None = None,
    unsettled: int | None = None,
) -> Shard:
    """It waits for its provider batches, or for its next round where it has none there.

    `wake_in_s` counts seconds from now by the ledger's clock, which the triggerer's query goes by too. `unsettled` are
    its items without an outcome; None where nobody counted.
    """
    to = ShardState.RUNNING if is_at_provider else ShardState.RETRY_WAIT
    return _edge(conn, shard, holder, to, reason, wake_in_s, unsettled)


def _edge(
    conn: Connection,
    shard: Shard,
    holder: fence.Holder,
    to: ShardState,
    reason: str,
    wake_in_s: float | None = None,
    unsettled: int | None = None,
) -> Shard:
    """Take one edge (or only set the wake-up time, when `to` is the present state) under the shared fence."""
    if to is not shard.state and to not in SHARD_EDGES[shard.state]:
        raise IllegalTransition(f"Shard {shard.shard_id} cannot go from {shard.state} to {to}.", "Read it again.")
    fence.enter(conn, holder)
    values = {
        "shard_id": shard.shard_id,
        "lease": shard.lease,
        "from_state": str(shard.state),
        "to_state": str(to),
        "reason": reason,
        "wake_in_s": wake_in_s,
        "unsettled": unsettled,
        "settles": to is ShardState.SETTLED,
    }
    with refusals(), conn.cursor(row_factory=class_row(Shard)) as cursor:
        row = cursor.execute(sql.text("shard/move"), values).fetchone()
    if row is None:
        raise IllegalTransition(f"Shard {shard.shard_id} is no longer {shard.state}.", "Read it again.")
    return row


def note_failure(conn: Connection, holder: fence.Holder, reason: str) -> None:
    """Say that the wake-up which holds the shard ended with a fault; nothing where another one took it meanwhile."""
    fence.enter(conn, holder)
    conn.execute(sql.text("shard/fail"), {"shard_id": holder.shard_id, "lease": holder.lease, "reason": reason})


def hold(conn: Connection, holder: fence.Holder, seconds: float) -> None:
    """Leave the provider alone for this shard until then, because it asked to (by the ledger's clock)."""
    fence.enter(conn, holder)
    conn.execute(
        sql.text("shard/hold"), {"shard_id": holder.shard_id, "lease": holder.lease, "seconds": min(seconds, 1e8)}
    )
