"""One partition per batch: made beside the parent, filled, attached; later detached and dropped.

Attaching waits for no reader and blocks none. Detaching runs CONCURRENTLY: it waits for old readers, never blocks new
ones, and must run outside a transaction as the owner.
"""

from __future__ import annotations

from psycopg import errors
from psycopg import sql as composed

from nightmill.storage import sql
from nightmill.storage.ledger import Connection, refusals


def create(conn: Connection, parent: str, batch_id: int) -> composed.Identifier:
    """Make an unattached partition that the writer may fill, and return its name."""
    with refusals():
        conn.execute("select nightmill.create_partition(%s, %s)", (parent, batch_id))
    return composed.Identifier("nightmill", f"{parent}_{batch_id}")


def attach(conn: Connection, parent: str, batch_id: int) -> None:
    """Index and attach it; from here on it is written through its parent only. Attached already is fine."""
    with refusals():
        conn.execute("select nightmill.attach_partition(%s, %s)", (parent, batch_id))


def retire(conn: Connection, parent: str, batch_id: int, timeout_s: float) -> bool:
    """Detach and drop a partition. `conn` must be the owner's and in autocommit.

    Returns False when readers held it for longer than `timeout_s`; the detach stays pending and the next call
    finishes it.
    """
    child = composed.Identifier("nightmill", f"{parent}_{batch_id}")
    table = composed.Identifier("nightmill", parent)
    status = conn.execute(sql.text("partition_status"), {"parent": parent, "child": f"{parent}_{batch_id}"}).fetchone()
    if status is not None:
        form = composed.SQL("finalize" if status[0] else "concurrently")
        conn.execute("select set_config('lock_timeout', %s, false)", (f"{int(timeout_s * 1000)}ms",))
        try:
            conn.execute(composed.SQL("alter table {} detach partition {} {}").format(table, child, form))
        except errors.LockNotAvailable:
            return False
    conn.execute("select nightmill.drop_detached_partition(%s, %s)", (parent, batch_id))
    return True
