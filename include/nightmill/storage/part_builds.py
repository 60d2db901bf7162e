"""Parts that are built beside a view before it shows them: filled in chunks of pages, indexed, then attached with the
flip. A killed builder leaves a table that the next try of the same work drops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import errors
from psycopg import sql as composed

from nightmill.domain.errors import StaleWriter, Transient
from nightmill.storage import partitions, sql
from nightmill.storage.partitions import Unattached
from nightmill.storage.session import Connection, refusals

TRIES = 3  # of building and showing a part: something can be published meanwhile
CHUNK_PAGES = 4096  # of 8 KiB: some 100,000 rows, copied in less than a second


class OutOfDate(Transient):
    """What was built goes out from a publication that is not shown any more."""


@dataclass(frozen=True, slots=True)
class Built:
    """A part that waits to be shown. `on` is the publication that it goes out from: once another one is shown, it is
    out of date. `replaces` are the parts whose place it takes; none by key, where the view shows nothing else."""

    table: Unattached
    on: int | None
    replaces: tuple[int, ...] = ()

    @property
    def part_id(self) -> int:
        """Its number, which is negative."""
        return self.table.batch_id


def begin(conn: Connection, view: str, batch_id: int | None) -> Unattached:
    """Make an empty part for a batch (None: for maintenance), and drop what earlier tries left. Commits."""
    drop_left(conn, view, batch_id)
    row = conn.execute(sql.text("part/number"), {"view_name": view, "batch_id": batch_id}).fetchone()
    assert row is not None
    made = partitions.make(conn, f"rows_{view}", row[0])
    conn.commit()
    return made


def drop_left(conn: Connection, view: str, batch_id: int | None) -> None:
    """Drop what earlier tries of the same work built and nobody shows. Whoever still fills it is stopped by that."""
    values = {"view_name": view, "batch_id": batch_id}
    for (part_id,) in conn.execute(sql.text("part/left_builds"), values).fetchall():
        with refusals():
            conn.execute("select nightmill.drop_built_part(%s, %s)", (f"rows_{view}", part_id))
        conn.execute(sql.text("part/forget_build"), {"part_id": part_id, "shown": False})
    conn.commit()


@contextmanager
def filling(made: Unattached) -> Iterator[None]:
    """Raise StaleWriter where another try has dropped what this one fills."""
    try:
        yield
    except errors.UndefinedTable:
        raise StaleWriter(
            f"Another try has dropped part {made.batch_id} of {made.parent}, which this one was filling.",
            "Nothing to do: that one goes on.",
        ) from None


def chunks(conn: Connection, parent: str, part_id: int) -> Iterator[dict[str, str]]:
    """Ranges of row addresses (ctid) that together are all pages of an attached part: reading by them, each chunk costs
    what it holds."""
    row = conn.execute(sql.text("part/count_pages"), {"parent": parent, "part_id": part_id}).fetchone()
    pages = int(row[0] or 0) if row else 0
    for first in range(0, pages, CHUNK_PAGES):
        yield {"first": f"({first},0)", "last": f"({min(first + CHUNK_PAGES, pages)},0)"}


def attach(conn: Connection, built: Built, shown: int | None) -> None:
    """Attach what was built, in the transaction of the flip. Raises OutOfDate where the view shows another publication
    by now."""
    if shown != built.on:
        raise OutOfDate(
            f"Something was published while part {built.part_id} of {built.table.parent} was built.",
            "Nothing to do: the next try builds upon that.",
        )
    with filling(built.table):
        partitions.refuse_replaced(conn, built.table)
        partitions.attach(conn, built.table.parent, built.part_id)
    conn.execute(sql.text("part/forget_build"), {"part_id": built.part_id, "shown": True})


def columns(conn: Connection, view: str, *aliases: str) -> dict[str, composed.Composable]:
    """All columns of a rows table but the part, to append to a list: as `names`, and by each alias."""
    rows = conn.execute(sql.text("view/rows_columns"), {"table": f"rows_{view}"}).fetchall()
    names = [name for name, _ in rows if name != "part_id"]
    parts: dict[str, composed.Composable] = {
        alias: composed.SQL("").join(composed.SQL(", {}").format(composed.Identifier(alias, name)) for name in names)
        for alias in aliases
    }
    bare = composed.SQL("").join(composed.SQL(", {}").format(composed.Identifier(name)) for name in names)
    return parts | {"names": bare, "rows": sql.rows_table(view)}
