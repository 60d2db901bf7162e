"""Token usage of a batch, summed in the database."""

from __future__ import annotations

from psycopg.rows import class_row, tuple_row

from nightmill.domain.receipt import Tokens
from nightmill.storage import sql
from nightmill.storage.session import Connection


def spent(conn: Connection, batch_id: int) -> Tokens:
    """What a batch used: its attempts, and what the provider reports beyond them (answers that were lost, for one).

    Where the provider reports nothing for a whole batch, a missing prompt count is filled from the manifest's.
    """
    return _tokens(conn, "usage/spent", batch_id)


def failed(conn: Connection, batch_id: int) -> list[tuple[str, Tokens]]:
    """What a batch's failed attempts used, by class; `unattributed` is what the provider reports beyond all attempts.

    Failed attempts without reported usage count as requests and add no tokens.
    """
    with conn.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(sql.text("usage/failed"), {"batch_id": batch_id}).fetchall()
    return [(kind, Tokens(*counts)) for kind, *counts in rows]


def reused(conn: Connection, batch_id: int) -> Tokens:
    """What the answers that a batch reuses had used when they were made."""
    return _found(conn, "usage/reused_recorded", batch_id) or _tokens(conn, "usage/reused", batch_id)


def _tokens(conn: Connection, query: str, batch_id: int) -> Tokens:
    row = _found(conn, query, batch_id)
    assert row is not None
    return row


def _found(conn: Connection, query: str, batch_id: int) -> Tokens | None:
    with conn.cursor(row_factory=class_row(Tokens)) as cursor:
        return cursor.execute(sql.text(query), {"batch_id": batch_id}).fetchone()
