"""The publications of a view, and what can still be shown of them: which parts exist, and what lies in them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from psycopg.rows import class_row

from nightmill.domain.merging import lies_in
from nightmill.jobs.settings.publish_settings import PublishMode
from nightmill.storage import holds, merging, publications, sql
from nightmill.storage.holds import Hold
from nightmill.storage.session import Connection


@dataclass(frozen=True, slots=True)
class Event:
    """A publication of a view's history. `kept` says whether the rows of all its parts are still there; `hold` is what
    a rollback set."""

    publish_seq: int
    kind: str
    batch_id: int | None
    published_at: datetime
    published_by: str
    approved_by: str | None
    note: str | None
    counts: dict[str, int]
    gaps: int
    shown: bool
    interval_start: datetime | None
    interval_end: datetime | None
    intervals: int
    batch_ids: list[int]
    part_ids: list[int]
    whole: bool
    kept: bool = False
    hold: Hold | None = None


def contents(conn: Connection, view: str) -> dict[int, frozenset[int]]:
    """The batches in each part that the view can show, of one that shows intervals."""
    attached = merging.attached(conn, view)
    kept = rows_kept(conn, view, [one.part_id for one in attached])
    return {one.part_id: one.batch_ids for one in attached if one.part_id in kept}


def rows_kept(conn: Connection, view: str, part_ids: Collection[int]) -> set[int]:
    """Those of some parts whose rows a view can show."""
    values = {"parent": f"rows_{view}", "part_ids": list(part_ids)}
    return {row[0] for row in conn.execute(sql.text("part/kept"), values).fetchall()}


def history(conn: Connection, view: str, most: int) -> list[Event]:
    """The newest publications of a view."""
    with conn.cursor(row_factory=class_row(Event)) as cursor:
        found: list[Event] = cursor.execute(
            sql.text("publication/history"), {"view_name": view, "most": most}
        ).fetchall()
    kept = _kept(conn, view, found)
    set_by = holds.of_publications(conn, view, [one.publish_seq for one in found])
    changes: list[dict[str, Any]] = [
        {"kept": one.publish_seq in kept, "hold": set_by.get(one.publish_seq)} for one in found
    ]
    return [replace(one, **change) for one, change in zip(found, changes, strict=True)]


def _kept(conn: Connection, view: str, events: Sequence[Event]) -> set[int]:
    """The publications of which all rows can be shown again."""
    listed = [one for one in events if one.part_ids and one.whole]
    if publications.mode_of(conn, view) is PublishMode.BY_INTERVAL:
        exist = contents(conn, view)
        return {one.publish_seq for one in listed if lies_in(set(one.batch_ids), exist) is not None}
    kept = rows_kept(conn, view, {part for one in listed for part in one.part_ids})
    return {one.publish_seq for one in listed if kept >= set(one.part_ids)}
