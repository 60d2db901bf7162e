"""The fence: what keeps a stale holder's writes out.

Every writing transaction takes the shared form first and reads generation and lease in the NEXT statement; batch
edges, cancel and takeover take the exclusive form first and never upgrade. (A condition inside the insert does not
fence: it would read a snapshot from before the lock.)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import errors

from nightmill.domain.errors import StaleWriter, Transient
from nightmill.storage import sql
from nightmill.storage.session import Connection


@dataclass(frozen=True, slots=True)
class Holder:
    """What a writer believes to hold: a batch's generation and, inside a shard, the shard's lease."""

    batch_id: int
    generation: int
    shard_id: int | None = None
    lease: int | None = None


def enter(conn: Connection, holder: Holder) -> None:
    """Begin a fenced write. Raises StaleWriter when somebody took over or cancelled."""
    conn.execute("select nightmill.fence_shared(%s)", (holder.batch_id,))
    _verify(conn, holder)


def enter_exclusive(conn: Connection, holder: Holder) -> None:
    """Begin a state edge of the batch: waits for its writers, and makes new ones wait."""
    conn.execute("select nightmill.fence_exclusive(%s)", (holder.batch_id,))
    _verify(conn, holder)


@contextmanager
def writing(conn: Connection, holder: Holder) -> Iterator[None]:
    """One fenced transaction: committed where the block ends, rolled back where it fails. Raises StaleWriter at once
    when somebody took over or cancelled."""
    try:
        enter(conn, holder)
        yield
    except BaseException:
        if not conn.closed:
            conn.rollback()
        raise
    conn.commit()


@contextmanager
def alone(conn: Connection, batch_id: int) -> Iterator[None]:
    """Keep everybody else from entering the fence of a batch, over several transactions of one session."""
    try:
        conn.execute("select pg_advisory_lock(7106, %s::int)", (batch_id,))
    except errors.LockNotAvailable:
        raise Transient(
            f"Somebody else is at work on batch {batch_id}.", "Nothing to do: the next try goes on."
        ) from None
    try:
        yield
    finally:
        if not conn.closed:
            conn.execute("select pg_advisory_unlock(7106, %s::int)", (batch_id,))


def _verify(conn: Connection, holder: Holder) -> None:
    row = conn.execute(sql.text("fence/read"), {"batch_id": holder.batch_id, "shard_id": holder.shard_id}).fetchone()
    generation, lease = row if row else (None, None)
    if generation != holder.generation or (holder.lease is not None and lease != holder.lease):
        raise StaleWriter(
            f"Batch {holder.batch_id} is at generation {generation}, shard {holder.shard_id} at lease {lease}; "
            f"this writer holds generation {holder.generation}, lease {holder.lease}.",
            "Nothing to do: whoever took over or cancelled goes on. What was refused is noted in quarantine.",
        )


def quarantine(conn: Connection, holder: Holder, what: str, rows: int | None = None, why: str | None = None) -> None:
    """Note a refused write and why. Runs in a transaction of its own, after the refused one was rolled back."""
    conn.execute(
        sql.text("maintenance/add_quarantine"),
        {
            "batch_id": holder.batch_id,
            "shard_id": holder.shard_id,
            "what": what,
            "generation": holder.generation,
            "lease": holder.lease,
            "rows": rows,
            "why": why,
        },
    )
