"""Token usage of a batch, summed in the database."""

from __future__ import annotations

from psycopg.rows import class_row

from nightmill.domain.receipt import Tokens
from nightmill.storage import sql
from nightmill.storage.ledger import Connection


def spent(conn: Connection, batch_id: int) -> Tokens:
    """What a batch's own attempts used; a missing prompt count is filled from the manifest's exact count."""
    return _tokens(conn, "usage_spent", batch_id)


def reused(conn: Connection, batch_id: int) -> Tokens:
    """What the answers that a batch reuses had used when they were made."""
    return _tokens(conn, "usage_reused", batch_id)


def _tokens(conn: Connection, query: str, batch_id: int) -> Tokens:
    with conn.cursor(row_factory=class_row(Tokens)) as cursor:
        row = cursor.execute(sql.text(query), {"batch_id": batch_id}).fetchone()
    assert row is not None
    return row
