"""How far a batch is: three small queries, none of which touches an item or an attempt, and one over its attempts."""

from __future__ import annotations

from dataclasses import replace

from psycopg.rows import class_row

from nightmill.domain.progress import Attempts, Progress, ProviderBatchCount, ShardCount
from nightmill.storage import sql
from nightmill.storage.session import Connection


def read(conn: Connection, batch_id: int) -> Progress:
    """The counts of one batch as they are now."""
    of = {"batch_id": batch_id}
    with conn.cursor(row_factory=class_row(ShardCount)) as cursor:
        shards = tuple(cursor.execute(sql.text("shard/progress"), of).fetchall())
    with conn.cursor(row_factory=class_row(ProviderBatchCount)) as cursor:
        sent = tuple(cursor.execute(sql.text("provider_batch/progress"), of).fetchall())
    row = conn.execute(sql.text("provider_batch/first_intent"), of).fetchone()
    return Progress(shards, sent, row[0] if row else None)


def with_attempts(conn: Connection, batch_id: int) -> Progress:
    """The same with the attempts counted: for people who look, not for every wake-up."""
    with conn.cursor(row_factory=class_row(Attempts)) as cursor:
        attempts = tuple(cursor.execute(sql.text("attempt/progress"), {"batch_id": batch_id}).fetchall())
    return replace(read(conn, batch_id), attempts=attempts)
