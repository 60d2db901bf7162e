"""What each view shows: one pointer per view, flipped in one transaction with the batch's last edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from nightmill.domain.errors import Blocked, Terminal
from nightmill.domain.states import BatchState
from nightmill.storage import batches, sql
from nightmill.storage.batches import Batch
from nightmill.storage.ledger import Connection


@dataclass(frozen=True, slots=True)
class Published:
    """What a view shows now. `newness` orders batches: (interval end or freeze time, freeze time)."""

    view_name: str
    batch_id: int
    publish_seq: int
    published_at: datetime
    gaps: int
    held: bool
    newness: list[datetime]


def current(conn: Connection, view: str, *, lock: bool = False) -> Published | None:
    """What the view shows, or None before the first publication. With `lock` nobody else can flip it meanwhile."""
    query = sql.text("published_lock" if lock else "published_get")
    with conn.cursor(row_factory=class_row(Published)) as cursor:
        return cursor.execute(query, {"view_name": view}).fetchone()


def newness(batch: Batch) -> list[datetime] | None:
    """What orders a batch among those of its view; None before it is frozen."""
    return None if batch.frozen_at is None else [batch.data_interval_end or batch.frozen_at, batch.frozen_at]


def publish(conn: Connection, batch: Batch, published_by: str, admit: Callable[[], None]) -> Published:
    """Flip the view to this batch and end the batch, in the caller's transaction.

    Order of locks: the batch's exclusive fence, then the view's pointer; then `admit` looks at the gates, and nothing
    that it looks at can change any more. Raises Blocked when the view is held, Terminal when something newer is
    published already, and what `admit` raises.
    """
    if batch.frozen_at is None or batch.counts is None:
        raise _not_reconciled(batch)
    batches.move(conn, batch, BatchState.PUBLISHED, "published")
    conn.execute(sql.text("published_first_lock"), {"view_name": batch.view_name})
    shown = current(conn, batch.view_name, lock=True)
    admit()
    if shown is not None and shown.newness > (newness(batch) or []):
        raise Terminal(
            f"The view {batch.view_name} shows batch {shown.batch_id}, which is newer than batch {batch.batch_id}.",
            "Nothing: readers see the newer result, and the answers of this batch are kept for reuse.",
        )
    if shown is not None and shown.held:
        raise Blocked(
            f"The view {batch.view_name} is held at batch {shown.batch_id}.",
            "As nightmill_owner: update nightmill.published set held = false where view_name = "
            f"'{batch.view_name}'; then clear publish.",
        )
    gaps = sum(count for bucket, count in batch.counts.items() if bucket not in ("accepted", "reused", "excluded"))
    conn.execute(
        sql.text("publication_flip"),
        {
            "view_name": batch.view_name,
            "batch_id": batch.batch_id,
            "published_by": published_by,
            "counts": Jsonb(batch.counts),
            "gaps": gaps,
        },
    )
    now_shown = current(conn, batch.view_name)
    assert now_shown is not None
    return now_shown


def stage(conn: Connection, batch: Batch, admit: Callable[[], None]) -> None:
    """Leave a preview for a person: what the view shows stays, in the caller's transaction. `admit` as above."""
    if batch.counts is None:
        raise _not_reconciled(batch)
    batches.move(conn, batch, BatchState.STAGED, "a preview")
    admit()


def readers_see(view: str, shown: Published | None) -> str:
    """What a reader of the view gets where a run leaves it as it is, in words."""
    if shown is None:
        return f"readers of results.{view} see no rows, as before"
    since = f"{shown.published_at:%Y-%m-%d %H:%M} UTC"
    return f"readers of results.{view} go on seeing batch {shown.batch_id}, as since {since}"


def _not_reconciled(batch: Batch) -> Terminal:
    return Terminal(f"Batch {batch.batch_id} was not reconciled.", "Clear reconcile and its downstream tasks.")
