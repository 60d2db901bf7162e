"""Views by key: the part that comes next is built before the flip, from what is shown and what a batch carries.

A row is newer than another one by (interval end or freeze time, freeze time) of its batch, so that an old backfill adds
ids and overwrites none. An id that is deleted leaves a tombstone, so that an older batch does not bring it back.
"""

from __future__ import annotations

import logging
from typing import Any

from psycopg import sql as composed

from nightmill.jobs.contract import JobDefinition
from nightmill.storage import part_builds, partitions, sql
from nightmill.storage.batches import Batch
from nightmill.storage.part_builds import Built
from nightmill.storage.publications import Published
from nightmill.storage.session import Connection

log = logging.getLogger(__name__)


def build(conn: Connection, batch: Batch, pinned: JobDefinition, shown: Published | None) -> Built:
    """Build what the view shows next, in chunks of about a second, each of them committed. Beside nobody's fence: what
    is shown and what was judged do not change."""
    view = batch.view_name
    made = part_builds.begin(conn, view, batch.batch_id)
    parts = part_builds.columns(conn, view, "shown", "carried")
    parts |= {"made": made.table, "kept": parts["shown"], "taken": parts["carried"]}
    parts["deleted"] = _deleted(pinned)
    newer = conn.execute(sql.text("part/by_key_newer"), {"batch_id": batch.batch_id}).fetchone()
    assert newer is not None
    # A part of no number matches no row.
    shown_id = shown.part_id if shown is not None else None
    values = {"part_id": made.batch_id, "batch_id": batch.batch_id, "shown_id": shown_id, "newer": newer[0]}
    kept = taken = 0
    with part_builds.filling(made):
        if shown_id is not None:
            kept = _copy(conn, "part/by_key_keep", made.parent, shown_id, parts, values)
            if newer[0]:
                kept += _copy(conn, "part/by_key_keep_newer", made.parent, shown_id, parts, values)
        taken = _copy(conn, "part/by_key_take", made.parent, batch.batch_id, parts, values)
        conn.execute(sql.text("part/by_key_delete").format(**parts), values)
        partitions.index(conn, made.parent, made.batch_id)
        conn.commit()
    log.info("batch %s: results.%s will show %s rows of before and %s of this batch", batch.batch_id, view, kept, taken)
    return Built(made, shown.publish_seq if shown is not None else None)


def _deleted(pinned: JobDefinition) -> composed.Composable:
    name = pinned.job.publish.deleted
    if name is None or name not in {column.name for column in pinned.columns}:
        return composed.SQL("false")
    return composed.Identifier("carried", name)


def _copy(
    conn: Connection,
    query: str,
    parent: str,
    source: int,
    parts: dict[str, composed.Composable],
    values: dict[str, Any],
) -> int:
    rows = 0
    statement = sql.text(query).format(**parts)
    for chunk in part_builds.chunks(conn, parent, source):
        rows += conn.execute(statement, values | chunk).rowcount
        conn.commit()
    return rows
