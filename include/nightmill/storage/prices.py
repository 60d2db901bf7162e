"""Prices as the ledger holds them."""

from __future__ import annotations

from psycopg.rows import class_row

from nightmill.domain.pricing import Price
from nightmill.storage import sql
from nightmill.storage.session import Connection


def of_model(conn: Connection, model: str) -> list[Price]:
    """All prices of a model, over time."""
    with conn.cursor(row_factory=class_row(Price)) as cursor:
        return cursor.execute(sql.text("usage/prices_of_model"), {"model": model}).fetchall()
