"""Parts of a view over time: several merged into one, one written anew without some batches, and those that nobody
needs any more taken away."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from psycopg.rows import class_row

from nightmill.domain.errors import Terminal
from nightmill.domain.parts import Part
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.storage import part_builds, partitions, publications, sql
from nightmill.storage.batches import Batch
from nightmill.storage.part_builds import Built
from nightmill.storage.publications import Published
from nightmill.storage.session import Connection

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShownView:
    """A view that shows something. `contract_id` is the newest one of its batches."""

    view_name: str
    job: str
    mode: PublishMode
    contract_id: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", PublishMode(self.mode))


@dataclass(frozen=True, slots=True)
class Attached:
    """A part of a view that exists. `hidden_by` is the publication that stopped showing it; None while it is shown, and
    for one that never was."""

    part_id: int
    batch_ids: frozenset[int]
    hidden_by: int | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_ids", frozenset(self.batch_ids))


def shown_views(conn: Connection) -> list[ShownView]:
    """Every view that shows something."""
    with conn.cursor(row_factory=class_row(ShownView)) as cursor:
        return cursor.execute(sql.text("view/shown")).fetchall()


def kept(conn: Connection, view: str, keep: int) -> list[int]:
    """The publications that can be rolled back to, the newest first."""
    rows = conn.execute(sql.text("publication/kept"), {"view_name": view, "keep": keep}).fetchall()
    return [publish_seq for (publish_seq,) in rows]


def attached(conn: Connection, view: str) -> list[Attached]:
    """Every part of a view, shown or not."""
    with conn.cursor(row_factory=class_row(Attached)) as cursor:
        return cursor.execute(sql.text("part/attached"), {"view_name": view}).fetchall()


def merge(conn: Connection, shown: Published, part_ids: Sequence[int], by: str) -> Published:
    """Copy whole parts into a new one, prove the copy and let the view show it in their place. Raises OutOfDate where
    something was published meanwhile. `conn` must be the owner's."""
    built = _copy(conn, shown, None, part_ids, frozenset(), prove=True)
    return flip_built(conn, shown, built, "merge", frozenset(), by)


def flip_built(
    conn: Connection, shown: Published, built: Built | None, kind: str, without: Collection[int], by: str
) -> Published:
    """Show the same batches but some, in a part that was built in place of others. Raises OutOfDate where something was
    published meanwhile. Commits."""
    now = publications.current(conn, shown.view_name, lock=True)
    if now is None or now.publish_seq != shown.publish_seq:
        conn.rollback()
        raise part_builds.OutOfDate(
            f"Something was published in results.{shown.view_name} meanwhile.", "Nothing to do: the next run goes on."
        )
    rewritten = {}
    if built is not None:
        part_builds.attach(conn, built, now.publish_seq)
        rewritten = dict.fromkeys(built.replaces, built.part_id)
    listed = publications.parts(conn, now.publish_seq)
    left = [
        replace(one, part_id=rewritten.get(one.part_id, one.part_id)) for one in listed if one.batch_id not in without
    ]
    flipped = publications.flip(conn, shown.view_name, kind, left, by)
    conn.commit()
    return flipped


def build_beside(conn: Connection, batch: Batch, shown: Published | None) -> Built | None:
    """The merged parts that hold intervals which this batch replaces, written anew without those; None where there are
    none."""
    mine = publications.part_of(batch)
    if shown is None or not mine.has_interval:
        return None
    listed = publications.parts(conn, shown.publish_seq)
    return build_without(conn, shown, batch.batch_id, [one for one in listed if mine.overlaps(one)])


def build_without(conn: Connection, shown: Published, batch_id: int | None, gone: Sequence[Part]) -> Built | None:
    """What is left of parts when some of what they hold goes, as one part; None where whole parts go."""
    listed = publications.parts(conn, shown.publish_seq)
    conn.commit()
    left = {one.part_id for one in listed if one not in gone}
    halved = sorted(left & {one.part_id for one in gone})
    if not halved:
        return None
    return _copy(conn, shown, batch_id, halved, {one.batch_id for one in gone}, prove=False)


def _copy(
    conn: Connection,
    shown: Published,
    batch_id: int | None,
    part_ids: Sequence[int],
    without: Collection[int],
    *,
    prove: bool,
) -> Built:
    made = part_builds.begin(conn, shown.view_name, batch_id)
    parts = part_builds.columns(conn, shown.view_name, "source", "made")
    parts |= {"made_columns": parts["made"], "made": made.table}
    values = {"part_id": made.batch_id, "without": list(without), "source_ids": list(part_ids)}
    copy = sql.text("part/copy").format(**parts)
    with part_builds.filling(made):
        for source_id in part_ids:
            for chunk in part_builds.chunks(conn, made.parent, source_id):
                conn.execute(copy, values | {"source_id": source_id} | chunk)
                conn.commit()
        partitions.index(conn, made.parent, made.batch_id)
        conn.commit()
        if prove:
            _prove(conn, made.batch_id, shown.view_name, sql.text("part/prove_copy").format(**parts), values)
    return Built(made, shown.publish_seq, tuple(part_ids))


def _prove(conn: Connection, part_id: int, view: str, query: object, values: dict[str, object]) -> None:
    row = conn.execute(query, values).fetchone()  # type: ignore[call-overload]
    conn.commit()
    copied, original, same = row
    if copied != original or not same:
        raise Terminal(
            f"Part {part_id} of results.{view} is not a true copy: it has {copied} rows instead of {original}.",
            "Nothing is lost: the view goes on showing the parts as they were. Report it with this log.",
        )


@contextmanager
def held(conn: Connection, view: str) -> Iterator[None]:
    """Let nobody flip a view, over several transactions of one session."""
    conn.execute(sql.text("view/lock"), {"view_name": view})
    try:
        yield
    finally:
        if not conn.closed:
            conn.execute(sql.text("view/unlock"), {"view_name": view})


def is_leaving(conn: Connection, view: str, part_id: int) -> bool:
    """Whether a part's detaching has begun: nobody new sees it."""
    values = {"parent": f"rows_{view}", "batch_id": part_id}
    row = conn.execute(sql.text("part/partition_status"), values).fetchone()
    return row is not None and bool(row[0])


def can_be_seen(conn: Connection, publish_seq: int) -> bool:
    """Whether some session, prepared transaction or standby may still read what was shown before a publication."""
    row = conn.execute(sql.text("publication/snapshot_before_flip"), {"publish_seq": publish_seq}).fetchone()
    assert row is not None
    return bool(row[0])


def is_seen(conn: Connection, view: str, part_id: int) -> bool:
    """Whether somebody may still read a part that is hidden by now."""
    hidden_by = next((one.hidden_by for one in attached(conn, view) if one.part_id == part_id), None)
    return hidden_by is not None and can_be_seen(conn, hidden_by)


def retire(conn: Connection, view: str, part_id: int, timeout_s: float) -> bool:
    """Take a part away that no snapshot sees; False where readers hold it for longer than the timeout. `conn` must be
    the owner's and in autocommit."""
    if not partitions.retire(conn, f"rows_{view}", part_id, timeout_s):
        return False
    conn.execute(sql.text("part/trim_deleted_keys"), {"part_id": part_id})
    return True


def trim_lists(conn: Connection, view: str, oldest_kept: int, attached_ids: Collection[int]) -> int:
    """Delete lists of parts of publications that nobody can go back to; returns how many lines. The publications
    themselves stay, for history."""
    values = {"view_name": view, "oldest_kept": oldest_kept, "attached": list(attached_ids)}
    row = conn.execute(sql.text("publication/trim_parts"), values).fetchone()
    assert row is not None
    return int(row[0])
