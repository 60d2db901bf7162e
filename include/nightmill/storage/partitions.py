"""One partition per batch: made beside the parent, filled, attached; later detached and dropped.

Attaching waits for no reader and blocks none. Detaching runs CONCURRENTLY in short tries: it waits for old readers,
never blocks new ones, and must run outside a transaction as the owner.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from psycopg import errors
from psycopg import sql as composed

from nightmill.domain.errors import StaleWriter, Terminal
from nightmill.storage import sql
from nightmill.storage.session import Connection, refusals

TRY_S = 0.2  # far below Postgres' deadlock_timeout of 1 s
BETWEEN_TRIES_S = 0.1


@dataclass(frozen=True, slots=True)
class Unattached:
    """A partition that is filled beside its parent. `identity` tells it from one that another try makes anew under
    the same name."""

    parent: str
    batch_id: int
    table: composed.Identifier
    identity: int


def make(conn: Connection, parent: str, batch_id: int) -> Unattached:
    """Like `create`, for a partition that is filled first and attached later."""
    table = create(conn, parent, batch_id)
    return Unattached(parent, batch_id, table, _identity(conn, table))


def create(conn: Connection, parent: str, batch_id: int) -> composed.Identifier:
    """Make an unattached partition that the writer may fill, and return its name."""
    try:
        with refusals():
            conn.execute("select nightmill.create_partition(%s, %s)", (parent, batch_id))
    except (errors.UniqueViolation, errors.DuplicateTable, errors.LockNotAvailable):
        raise StaleWriter(
            f"Another try of this task is at work on batch {batch_id}.",
            "Nothing to do: that one, or the next try, goes on.",
        ) from None
    return name(conn, parent, batch_id)


def name(conn: Connection, parent: str, batch_id: int) -> composed.Identifier:
    """What a batch's partition is called."""
    row = conn.execute("select nightmill.partition_name(%s, %s)", (parent, batch_id)).fetchone()
    assert row is not None
    return composed.Identifier("nightmill", row[0])


def _identity(conn: Connection, table: composed.Identifier) -> int:
    row = conn.execute("select to_regclass(%s)::oid", (table.as_string(conn),)).fetchone()
    assert row is not None
    return int(row[0])


def refuse_replaced(conn: Connection, made: Unattached) -> None:
    """Raise StaleWriter unless the table is still the one that was filled: attaching another freeze's rows beside our
    payloads, for one, would give documents to wrong items."""
    conn.execute(composed.SQL("lock table {} in row exclusive mode").format(made.table))  # a drop under way ends first
    if _identity(conn, made.table) != made.identity:
        raise StaleWriter(
            "Another try of this task fills the batch's partitions anew.", "Nothing to do: that one goes on."
        )


def attached(conn: Connection, parent: str, batch_id: int) -> bool:
    """Whether a batch's partition is part of its parent."""
    return (
        conn.execute(sql.text("part/partition_status"), {"parent": parent, "batch_id": batch_id}).fetchone() is not None
    )


def holding(conn: Connection, parent: str, batch_id: int) -> int | None:
    """The number of the part in which a batch's rows lie; None where they are gone."""
    row = conn.execute(sql.text("part/of_batch"), {"batch_id": batch_id, "parent": parent}).fetchone()
    return int(row[0]) if row else None


def index(conn: Connection, parent: str, batch_id: int) -> None:
    """Index a filled partition: ahead of `attach`, which then takes milliseconds, or a batch's rows when all of them
    are there. Indexed already is fine. Blocks no reader."""
    with refusals():
        conn.execute("select nightmill.index_partition(%s, %s)", (parent, batch_id))


def attach(conn: Connection, parent: str, batch_id: int) -> None:
    """Attach it, indexed unless it holds rows; from here on it is written through its parent only. Attached already is
    fine."""
    with refusals():
        conn.execute("select nightmill.attach_partition(%s, %s)", (parent, batch_id))


def retire(conn: Connection, parent: str, batch_id: int, timeout_s: float) -> bool:
    """Detach and drop a partition. `conn` must be the owner's and in autocommit.

    Returns False when old readers held it for longer than `timeout_s`; the detach stays pending, new readers do not
    see the partition any more, and the next call finishes it. So too where another partition's detach is pending:
    that one comes first. A table that `retire JOB` dropped has none left.
    """
    if conn.execute("select to_regclass(%s)", (f'nightmill."{parent}"',)).fetchone() == (None,):
        return True
    deadline = time.monotonic() + timeout_s
    try:
        while True:
            try:
                _detach(conn, parent, batch_id, max(deadline - time.monotonic(), 0.001))
                conn.execute("select nightmill.drop_detached_partition(%s, %s)", (parent, batch_id))
                return True
            except (errors.LockNotAvailable, errors.QueryCanceled):
                if time.monotonic() + BETWEEN_TRIES_S >= deadline:
                    return False
                time.sleep(BETWEEN_TRIES_S)
            except errors.ObjectNotInPrerequisiteState:  # Postgres detaches one partition of a table at a time
                return False
            except errors.DependentObjectsStillExist as fault:
                raise Terminal(
                    f"Something depends on a table of batch {batch_id}: {fault.diag.message_detail}.",
                    "Drop that, and let it read the view in schema results instead.",
                ) from fault
    finally:
        if not conn.closed:
            conn.execute("reset lock_timeout")
            conn.execute("reset statement_timeout")


def _detach(conn: Connection, parent: str, batch_id: int, left_s: float) -> None:
    """One try. FINALIZE waits for old snapshots while it locks the partition, and a reader with an old snapshot that
    touches the view then waits for FINALIZE: short tries never last until Postgres calls that a deadlock."""
    child = name(conn, parent, batch_id)
    table = composed.Identifier("nightmill", parent)
    status = conn.execute(sql.text("part/partition_status"), {"parent": parent, "batch_id": batch_id}).fetchone()
    conn.execute("select set_config('lock_timeout', %s, false)", (f"{int(TRY_S * 1000)}ms",))
    if status is not None:
        form = composed.SQL("finalize" if status[0] else "concurrently")
        # lock_timeout counts for each reader anew; this bounds them together.
        conn.execute("select set_config('statement_timeout', %s, false)", (f"{max(int(left_s * 1000), 1)}ms",))
        conn.execute(composed.SQL("alter table {} detach partition {} {}").format(table, child, form))
        conn.execute("set statement_timeout = 0")
