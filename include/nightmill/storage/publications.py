"""What each view shows: one pointer per view to a publication, which is a list of parts. It is flipped in one
transaction with the batch's last edge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

import orjson
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from nightmill.domain.errors import Terminal
from nightmill.domain.parts import Part, kept_beside
from nightmill.domain.states import BatchState
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.storage import batches, holds, part_builds, sql
from nightmill.storage.batches import Batch
from nightmill.storage.part_builds import Built
from nightmill.storage.session import Connection, refusals


@dataclass(frozen=True, slots=True)
class Published:
    """What a view shows now. `newness` orders batches: (interval end or freeze time, freeze time). `batch_id` is the
    batch that was published last, and the interval is its own; `part_id` is the one part that is shown, None in
    by_interval."""

    view_name: str
    batch_id: int
    publish_seq: int
    published_at: datetime
    gaps: int
    mode: PublishMode
    part_id: int | None
    newness: list[datetime]
    data_interval_start: datetime | None
    data_interval_end: datetime | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", PublishMode(self.mode))


def current(conn: Connection, view: str, *, lock: bool = False) -> Published | None:
    """What the view shows, or None before the first publication. With `lock` nobody else can flip it meanwhile."""
    if lock:
        conn.execute(sql.text("publication/lock_first"), {"view_name": view})
    query = sql.text("publication/lock_shown" if lock else "publication/get_shown")
    with conn.cursor(row_factory=class_row(Published)) as cursor:
        return cursor.execute(query, {"view_name": view}).fetchone()


def parts(conn: Connection, publish_seq: int) -> list[Part]:
    """What a publication lists, by interval."""
    with conn.cursor(row_factory=class_row(Part)) as cursor:
        return cursor.execute(sql.text("publication/parts"), {"publish_seq": publish_seq}).fetchall()


def part_of(batch: Batch) -> Part:
    """The part of a reconciled batch. Raises Terminal for another one."""
    if batch.frozen_at is None or batch.counts is None:
        raise _not_reconciled(batch)
    gaps = sum(count for bucket, count in batch.counts.items() if bucket not in ("accepted", "reused", "excluded"))
    interval = batch.data_interval_start, batch.data_interval_end
    return Part(batch.batch_id, batch.batch_id, *interval, batch.frozen_at, batch.counts, gaps)


def newness(batch: Batch) -> list[datetime] | None:
    """What orders a batch among those of its view; None before it is frozen."""
    return None if batch.frozen_at is None else [batch.data_interval_end or batch.frozen_at, batch.frozen_at]


def mode_of(conn: Connection, view: str) -> PublishMode:
    """How `apply` set the view up."""
    row = conn.execute(sql.text("view/mode"), {"view_name": view}).fetchone()
    return PublishMode(row[0]) if row else PublishMode.REPLACE


def publish(
    conn: Connection, batch: Batch, published_by: str, admit: Callable[[], str | None], built: Built | None = None
) -> Published:
    """Flip the view to this batch and end the batch, in the caller's transaction. `built` is the part that holds what
    the view goes on showing, where that was written anew: the other intervals of a merged part, or all rows by key.

    Order of locks: the batch's exclusive fence, then the view's pointer; then `admit` looks at the gates and says who
    approved the batch, and nothing that it looks at can change any more. Raises Blocked when the view is held, Terminal
    when something newer is published already, or an interval that overlaps this one, and what `admit` raises.
    """
    mine = part_of(batch)
    batches.move(conn, batch, BatchState.PUBLISHED, "published")
    shown = current(conn, batch.view_name, lock=True)
    approved_by = admit()
    holds.refuse_held(conn, batch)
    kept = _kept(conn, batch, shown, mine, built)
    if built is not None:
        part_builds.attach(conn, built, shown.publish_seq if shown is not None else None)
        if not built.replaces:
            mine = replace(mine, part_id=built.part_id)
    everything = [*kept, mine]
    return flip(
        conn, batch.view_name, "publish", everything, published_by, batch_id=batch.batch_id, approved_by=approved_by
    )


def _kept(conn: Connection, batch: Batch, shown: Published | None, mine: Part, built: Built | None) -> list[Part]:
    """What the view goes on showing beside this part. Raises Terminal where it cannot show it."""
    mode = mode_of(conn, batch.view_name)
    if mode is PublishMode.BY_KEY:
        return []
    if mode is PublishMode.BY_INTERVAL:
        return kept_beside_shown(conn, batch, shown, mine, built)
    if shown is not None and shown.newness > (newness(batch) or []):
        raise Terminal(
            f"The view {batch.view_name} shows batch {shown.batch_id}, which is newer than batch {batch.batch_id}.",
            "Nothing: readers see the newer result, and the answers of this batch are kept for reuse.",
        )
    return []


def kept_beside_shown(
    conn: Connection, batch: Batch, shown: Published | None, mine: Part | None = None, built: Built | None = None
) -> list[Part]:
    """In by_interval: what stays as it is when this batch is published. Raises Terminal where it cannot be, also for
    one that is only frozen so far."""
    ahead = mine is None
    if mine is None:
        assert batch.frozen_at is not None
        interval = batch.data_interval_start, batch.data_interval_end
        mine = Part(batch.batch_id, batch.batch_id, *interval, batch.frozen_at, {}, 0)
    if not mine.has_interval:
        raise Terminal(
            f"Batch {batch.batch_id} has no data interval, and results.{batch.view_name} shows one batch per interval.",
            "Trigger a new run with a data interval.",
        )
    listed = parts(conn, shown.publish_seq) if shown is not None else []
    widely = batch.options.replace_intervals
    rewritten = dict.fromkeys(built.replaces, built.part_id) if built is not None else {}
    if ahead:  # what was merged is written anew before the flip
        rewritten = {one.part_id: one.part_id for one in listed}
    return kept_beside(mine, listed, batch.view_name, replace_intervals=widely, rewritten=rewritten)


def shows(conn: Connection, shown: Published, batch: Batch) -> bool:
    """Whether rows of this batch are among what is shown."""
    return any(one.batch_id == batch.batch_id for one in parts(conn, shown.publish_seq))


def flip(
    conn: Connection,
    view: str,
    kind: str,
    shown: Sequence[Part],
    by: str,
    *,
    batch_id: int | None = None,
    approved_by: str | None = None,
    note: str | None = None,
) -> Published:
    """Show these parts and no others, in the caller's transaction, which has locked what is shown (`current`).

    `kind` is publish, rollback, merge or retention; `batch_id` is the batch that a publish adds. Counts and gaps of a
    publication are those of all its parts.
    """
    mode = mode_of(conn, view)
    shown_batch = _shown_batch(kind, shown, current(conn, view), batch_id)
    counts: Counter[str] = Counter()
    for one in shown:
        counts.update(one.counts)
    values = {
        "view_name": view,
        "batch_id": batch_id,
        "kind": kind,
        "published_by": by,
        "approved_by": approved_by,
        "note": note,
        "counts": Jsonb(dict(counts)),
        "gaps": sum(one.gaps for one in shown),
        "parts": orjson.dumps(list(shown)).decode(),  # psycopg's arrays take milliseconds for hundreds of parts
    }
    with refusals():
        row = conn.execute(sql.text("publication/add"), values).fetchone()
        assert row is not None
        part_id = None if mode is PublishMode.BY_INTERVAL else shown[0].part_id
        pointer = {"publish_seq": row[0], "shown_batch": shown_batch, "mode": mode, "part_id": part_id}
        conn.execute(sql.text("publication/flip"), pointer)
    return cast(Published, current(conn, view))


def _shown_batch(kind: str, shown: Sequence[Part], before: Published | None, added: int | None) -> int | None:
    """The batch that the view is said to show: the added one, else the newest of the parts."""
    if kind == "merge" and before is not None:  # what was published last is so still
        return before.batch_id
    newest = max(shown, key=lambda part: (part.interval_end or part.frozen_at, part.frozen_at), default=None)
    return added or (newest.batch_id if newest else before.batch_id if before else None)


def stage(conn: Connection, batch: Batch, admit: Callable[[], str | None]) -> None:
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
    if shown.mode is PublishMode.BY_INTERVAL:
        return f"readers of results.{view} go on seeing publication {shown.publish_seq}, as since {since}"
    return f"readers of results.{view} go on seeing batch {shown.batch_id}, as since {since}"


def _not_reconciled(batch: Batch) -> Terminal:
    return Terminal(f"Batch {batch.batch_id} was not reconciled.", "Clear reconcile and its downstream tasks.")
