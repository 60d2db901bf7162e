"""Two sessions work on one batch's partition at a time, and names that could meet do not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import psycopg
import pytest
from support.ledger import LOOK, Ledger, apply, definition

from nightmill.domain.errors import ConfigError, StaleWriter, Terminal
from nightmill.storage import fence, partitions
from nightmill.storage.session import Connection


class Beside(threading.Thread):
    """A call in a session of its own. `waits` returns when it waits for a lock of another session."""

    def __init__(self, ledger: Ledger, conn: Connection, call: Callable[[Connection], object]) -> None:
        super().__init__(daemon=True)
        self._ledger, self._conn, self._call = ledger, conn, call
        self.fault: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self._call(self._conn)
            self._conn.commit()
        except Exception as fault:
            self._conn.rollback()
            self.fault = fault

    def waits(self) -> None:
        until = time.monotonic() + 10
        while not self._ledger.sql("select pg_blocking_pids(%s) <> '{}'", self._conn.info.backend_pid)[0][0]:
            assert time.monotonic() < until and self.is_alive(), f"it does not wait ({self.fault})"

    def ended(self) -> Exception | None:
        self.join(10)
        assert not self.is_alive()
        return self.fault


def made(ledger: Ledger, conn: Connection, parent: str, rows: int = 0) -> int:
    """An unattached partition that another session sees."""
    batch = ledger.created()
    table = partitions.create(conn, parent, batch.batch_id)
    if rows:
        conn.execute(
            psycopg.sql.SQL(
                "insert into {} (batch_id, ordinal, kind) select %s, n, 'excluded' from generate_series(1, %s) n"
            ).format(table),
            (batch.batch_id, rows),
        )
    conn.commit()
    return batch.batch_id


def test_a_retry_that_makes_a_partition_anew_does_not_drop_what_the_first_try_attaches(ledger: Ledger) -> None:
    with ledger.writer() as first, ledger.writer() as retry:
        batch_id = made(ledger, first, "outcome", rows=3)
        partitions.attach(first, "outcome", batch_id)
        beside = Beside(ledger, retry, lambda conn: partitions.create(conn, "outcome", batch_id))
        beside.waits()
        first.commit()
        fault = beside.ended()
        assert isinstance(fault, Terminal) and "attached already" in str(fault)
        assert partitions.attached(first, "outcome", batch_id)
        assert first.execute("select count(*) from nightmill.outcome").fetchone() == (3,)


def test_a_try_whose_partition_is_made_anew_meanwhile_is_refused(ledger: Ledger) -> None:
    with ledger.writer() as first, ledger.writer() as retry:
        batch_id = made(ledger, first, "outcome")
        filled = partitions.make(first, "outcome", batch_id)
        first.commit()
        partitions.create(retry, "outcome", batch_id)
        beside = Beside(ledger, first, lambda conn: partitions.refuse_replaced(conn, filled))
        beside.waits()
        retry.commit()
        assert isinstance(beside.ended(), StaleWriter)


def test_two_tries_that_attach_a_partition_attach_it_once(ledger: Ledger) -> None:
    with ledger.writer() as first, ledger.writer() as second:
        batch_id = made(ledger, first, "item")
        partitions.attach(first, "item", batch_id)
        beside = Beside(ledger, second, lambda conn: partitions.attach(conn, "item", batch_id))
        beside.waits()
        first.commit()
        assert beside.ended() is None
        partitions.attach(first, "item", batch_id)


def test_a_partition_that_is_attached_meanwhile_is_not_dropped_as_a_detached_one(ledger: Ledger) -> None:
    with ledger.writer() as first, ledger.admin() as owner:
        batch_id = made(ledger, first, "item")
        partitions.attach(first, "item", batch_id)
        drop = "select nightmill.drop_detached_partition('item', %s)"
        beside = Beside(ledger, owner, lambda conn: conn.execute(drop, (batch_id,)))
        beside.waits()
        first.commit()
        assert "still attached" in str(beside.ended())
        assert partitions.attached(first, "item", batch_id)


def test_a_partition_that_is_dropped_meanwhile_is_not_attached_and_that_is_said(ledger: Ledger) -> None:
    with ledger.writer() as first, ledger.admin() as owner:
        batch_id = made(ledger, first, "item")
        owner.execute("select nightmill.drop_detached_partition('item', %s)", (batch_id,))
        beside = Beside(ledger, first, lambda conn: partitions.attach(conn, "item", batch_id))
        beside.waits()
        owner.commit()
        assert f"item_{batch_id} was not made" in str(beside.ended())


def test_a_retry_beside_a_try_that_fills_its_partition_leaves_it_to_that_one(ledger: Ledger) -> None:
    with ledger.writer() as first, ledger.writer() as retry:
        batch_id = made(ledger, first, "item")
        first.execute(f"insert into nightmill.item_{batch_id} select * from nightmill.item")
        retry.execute("set lock_timeout = '50ms'")
        with pytest.raises(StaleWriter, match="Another try of this task is at work"):
            partitions.create(retry, "item", batch_id)


def test_a_view_that_is_called_like_a_batch_of_another_view_takes_nothing_from_it(ledger: Ledger) -> None:
    ledger.publish(ledger.validating(2))
    number = ledger.sql("select max(batch_id) + 1 from nightmill.batch")[0][0]
    other = definition("numbered", f"notes_{number}")
    assert apply(ledger.admin_dsn, other) == "created"
    batch = ledger.validating(4)
    assert batch.batch_id == number
    ledger.publish(batch)
    with ledger.reader() as conn:
        assert conn.execute(LOOK).fetchone() == (4, number, number, 1)
    mine, ledger.job = ledger.job, other
    ledger.publish(ledger.validating(3))
    assert ledger.sql(f"select count(*) from results.notes_{number}") == [(3,)]
    ledger.job = mine
    ledger.publish(ledger.validating(1))
    with ledger.admin(autocommit=True) as owner:
        assert partitions.retire(owner, "rows_notes", number, timeout_s=5) is True
    assert ledger.sql(f"select count(*) from results.notes_{number}") == [(3,)]
    assert apply(ledger.admin_dsn, other) == "unchanged"


def test_rows_of_a_batch_from_before_keep_their_name_until_they_are_dropped(ledger: Ledger) -> None:
    old, new = ledger.validating(2), ledger.validating(3)
    ledger.publish(old)
    ledger.sql(f"alter table nightmill.rows_{old.batch_id} rename to rows_notes_{old.batch_id}")
    ledger.publish(new)
    with pytest.raises(ConfigError, match=f"rows_notes_{old.batch_id} is taken") as refused:
        apply(ledger.admin_dsn, definition("numbered", f"notes_{old.batch_id}"))
    assert "Give publish.view another name" in refused.value.remedy
    with ledger.writer() as conn:
        assert partitions.attached(conn, "rows_notes", old.batch_id)
        with pytest.raises(Terminal, match="attached already"):
            partitions.create(conn, "rows_notes", old.batch_id)
    with ledger.admin(autocommit=True) as owner:
        assert partitions.retire(owner, "rows_notes", old.batch_id, timeout_s=5) is True
    assert ledger.sql("select to_regclass(%s)", f"nightmill.rows_notes_{old.batch_id}") == [(None,)]


@pytest.mark.parametrize("parent", ["v" * 48, "v" * 47 + "w"])
def test_the_longest_names_and_the_largest_numbers_are_not_cut(ledger: Ledger, parent: str) -> None:
    apply(ledger.admin_dsn, definition("long_name", parent))
    longest = ledger.sql("select nightmill.partition_name(%s, %s)", f"rows_{parent}", 2**63 - 1)[0][0]
    assert len(longest + "_batch") <= 63
    with ledger.writer() as conn:
        for call in ("create", "index", "attach"):
            conn.execute(f"select nightmill.{call}_partition(%s, %s)", (f"rows_{parent}", 2**63 - 1))
        assert partitions.attached(conn, f"rows_{parent}", 2**63 - 1)


def test_a_table_that_is_no_partitioned_one_of_ours_is_no_parent(ledger: Ledger) -> None:
    batch = ledger.frozen(3, settle=True)
    number = batch.batch_id
    for parent in ("batch", "rows_unknown", "rows", f"item_{number}", "rows_notes'; drop table nightmill.batch --"):
        for call in ("create", "index", "attach"):
            assert ledger.refused(f"select nightmill.{call}_partition(%s, %s)", (parent, 9999)) == "NM005"
    apply(ledger.admin_dsn, definition("other", "other"))
    assert ledger.refused("select nightmill.attach_partition('rows_other', %s)", (number,)) == "NM005"
    with ledger.writer() as conn:
        assert not partitions.attached(conn, "rows_other", number)
        fence.enter(conn, batch.holder)
