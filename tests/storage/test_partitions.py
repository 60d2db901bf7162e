"""Partitions come and go beside readers: attaching waits for nobody, retiring ends in time and blocks nobody new."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest
from psycopg import IsolationLevel
from support.figures import note
from support.ledger import LOOK, Ledger

from nightmill.storage import partitions


def test_making_a_batchs_partitions_neither_waits_for_readers_nor_blocks_them(ledger: Ledger) -> None:
    ledger.publish(ledger.validating(30))
    parents = ("item", "attempt", "outcome", "rows_notes")
    with ledger.reader() as reader, ledger.admin() as analyst, ledger.writer() as writer:
        reader.execute(LOOK)
        for parent in parents:
            analyst.execute(f"select count(*) from nightmill.{parent}")
        batch = ledger.created()
        writer.execute("set lock_timeout = '50ms'")  # a wait would fail
        start = time.perf_counter()
        for parent in parents:
            partitions.create(writer, parent, batch.batch_id)
            partitions.attach(writer, parent, batch.batch_id)
        took = time.perf_counter() - start
        with ledger.reader() as other:  # the attaching transaction is still open
            other.execute("set lock_timeout = '50ms'")
            assert other.execute(LOOK).fetchone() == reader.execute(LOOK).fetchone()
        writer.commit()
        reader.execute(LOOK)
    note(f"four partitions were made and attached beside open readers in {took * 1000:.0f} ms")
    assert took < 2


def test_two_calls_index_a_batchs_rows_once_beside_readers(ledger: Ledger) -> None:
    ledger.publish(ledger.validating(30))
    batch = ledger.frozen(30, settle=True)
    with ledger.reader() as reader, ledger.admin() as analyst, ledger.writer() as first, ledger.writer() as second:
        seen = reader.execute(LOOK).fetchone()
        analyst.execute("select count(*) from nightmill.rows_notes")
        partitions.index(first, "rows_notes", batch.batch_id)
        other = threading.Thread(target=partitions.index, args=(second, "rows_notes", batch.batch_id))
        other.start()
        with ledger.reader() as later:  # the indexing transaction is still open
            later.execute("set lock_timeout = '50ms'")
            assert later.execute(LOOK).fetchone() == seen
        first.commit()
        other.join(10)
        assert not other.is_alive()
        second.commit()
    assert len(ledger.sql(f"select indexname from pg_indexes where tablename = 'rows_{batch.batch_id}'")) == 1


def test_retiring_ends_in_its_timeout_beside_an_old_reader_and_is_finished_by_the_next_call(ledger: Ledger) -> None:
    old, new = ledger.validating(30), ledger.validating(40)
    ledger.publish(old)
    ledger.publish(new)
    with ledger.reader() as reader, ledger.admin(autocommit=True) as owner:
        reader.isolation_level = IsolationLevel.REPEATABLE_READ
        reader.execute(LOOK)
        for _ in range(2):  # the first call begins the detach, the second one finds it pending
            blocked: list[BaseException] = []
            looks = [0]
            stop = threading.Event()

            def watch(
                blocked: list[BaseException] = blocked, looks: list[int] = looks, stop: threading.Event = stop
            ) -> None:
                try:
                    while not stop.is_set():
                        with ledger.reader() as conn:
                            conn.execute("set lock_timeout = '50ms'")
                            assert conn.execute(LOOK).fetchone() == (40, new.batch_id, new.batch_id, 1)
                            looks[0] += 1
                except BaseException as fault:
                    blocked.append(fault)

            thread = threading.Thread(target=watch)
            thread.start()
            start = time.perf_counter()
            assert partitions.retire(owner, "rows_notes", old.batch_id, timeout_s=1.5) is False
            took = time.perf_counter() - start
            assert reader.execute(LOOK).fetchone() == (40, new.batch_id, new.batch_id, 1)
            stop.set()
            thread.join(10)
            note(f"retire gave up after {took:.2f} s; new readers looked {looks[0]} times meanwhile")
            assert not blocked
            assert looks[0] > 5
            assert 1.4 <= took <= 10  # the reader would hold it for ever
        reader.commit()
        assert partitions.retire(owner, "rows_notes", old.batch_id, timeout_s=5) is True
        assert partitions.retire(owner, "rows_notes", old.batch_id, timeout_s=5) is True  # nothing left to do
        assert owner.execute("show lock_timeout").fetchone() == ("0",)
        assert owner.execute("show statement_timeout").fetchone() == ("0",)
        assert reader.execute(LOOK).fetchone() == (40, new.batch_id, new.batch_id, 1)
    assert ledger.sql("select to_regclass(%s)", f"nightmill.rows_{old.batch_id}") == [(None,)]


def test_a_reader_with_an_old_snapshot_is_never_the_victim_of_retiring(ledger: Ledger) -> None:
    """It took its snapshot before the detach and touches the view first when FINALIZE waits for that snapshot while
    it locks the partition: without care both wait for each other."""
    old, new = ledger.validating(30), ledger.validating(40)
    ledger.publish(old)
    ledger.publish(new)
    with ledger.reader() as busy, ledger.reader() as late, ledger.admin(autocommit=True) as owner:
        owner.execute("set deadlock_timeout = '60s'")  # the reader looks for a deadlock first, and would end by it
        late.isolation_level = IsolationLevel.REPEATABLE_READ
        late.execute("select 1")
        busy.execute(LOOK)
        assert partitions.retire(owner, "rows_notes", old.batch_id, timeout_s=0.3) is False
        busy.commit()
        finished: list[bool] = []
        retiring = threading.Thread(
            target=lambda: finished.append(partitions.retire(owner, "rows_notes", old.batch_id, timeout_s=4))
        )
        retiring.start()
        time.sleep(0.5)
        start = time.perf_counter()
        assert late.execute(LOOK).fetchone() == (40, new.batch_id, new.batch_id, 1)
        waited = time.perf_counter() - start
        note(f"a reader with an old snapshot waited {waited * 1000:.0f} ms for its look while retiring waited")
        assert waited < 3  # else it waits until retiring gives up; in a deadlock it would be the victim after a second
        retiring.join(10)
        assert finished == [False]
        late.commit()
        assert partitions.retire(owner, "rows_notes", old.batch_id, timeout_s=5) is True


def test_several_old_readers_together_cannot_hold_retiring_longer_than_its_timeout(ledger: Ledger) -> None:
    old, new = ledger.validating(30), ledger.validating(40)
    ledger.publish(old)
    ledger.publish(new)
    readers = [ledger.reader() for _ in range(5)]
    try:
        for reader in readers:
            reader.execute(LOOK)

        def leave_one_by_one() -> None:
            for reader in readers:
                time.sleep(0.7)
                reader.commit()

        leaving = threading.Thread(target=leave_one_by_one)
        leaving.start()
        with ledger.admin(autocommit=True) as owner:
            start = time.perf_counter()
            assert partitions.retire(owner, "rows_notes", old.batch_id, timeout_s=1) is False
            assert time.perf_counter() - start < 3  # the last one leaves after 3.5 s
            leaving.join(10)
            assert partitions.retire(owner, "rows_notes", old.batch_id, timeout_s=5) is True
    finally:
        for reader in readers:
            reader.close()


def test_a_retire_killed_while_it_waited_is_finished_by_the_next_call(ledger: Ledger) -> None:
    old, new = ledger.validating(30), ledger.validating(40)
    ledger.publish(old)
    ledger.publish(new)
    with ledger.reader() as reader, ledger.admin(autocommit=True) as doomed, ledger.admin(autocommit=True) as owner:
        reader.execute(LOOK)
        pid = doomed.info.backend_pid

        def retire() -> None:
            with pytest.raises(psycopg.OperationalError):
                partitions.retire(doomed, "rows_notes", old.batch_id, timeout_s=30)

        thread = threading.Thread(target=retire)
        thread.start()
        time.sleep(0.5)
        owner.execute("select pg_terminate_backend(%s)", (pid,))
        thread.join(10)
        assert not thread.is_alive()
        reader.commit()
        assert partitions.retire(owner, "rows_notes", old.batch_id, timeout_s=5) is True
