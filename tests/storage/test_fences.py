"""Nothing of a stale holder is committed, and nobody waits long to cancel: shown with real connections."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from psycopg import errors
from support.figures import note
from support.ledger import Ledger

from nightmill.domain.errors import IllegalTransition, StaleWriter
from nightmill.domain.failures import Failure, FailureClass
from nightmill.domain.snapshots import BatchStatus, Snapshot
from nightmill.domain.states import BatchState, ProviderBatchState, ShardState
from nightmill.storage import batches, fence, provider_batches, sending, settlement, shards
from nightmill.storage.batches import Batch
from nightmill.storage.fence import Holder
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.settlement import Arrival
from nightmill.storage.shards import Shard

CHUNK = 1_000
WRITERS = 8


def accepted(ordinal: int) -> Arrival:
    return Arrival(ordinal, None, {"title": f"title {ordinal}", "pages": ordinal}, uncached_tokens=9, model="echo-1")


def in_threads(*work: Callable[[], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=one, daemon=True) for one in work]
    for thread in threads:
        thread.start()
    return threads


def ingesting(ledger: Ledger, items: int, shard_count: int) -> tuple[Batch, list[tuple[Shard, Holder, ProviderBatch]]]:
    """A running batch whose provider batches have all ended and wait to be collected."""
    batch, made = ledger.running(items, shard_count=shard_count)
    work = []
    for shard in made:
        taken, holder = ledger.taken(batch, shard)
        intent = ledger.intent(holder, range(shard.first_ordinal, shard.last_ordinal + 1))
        work.append((taken, holder, ledger.ended(holder, intent)))
    return batch, work


def test_a_stale_writer_commits_nothing_after_a_cancel(ledger: Ledger) -> None:
    batch, ((_, holder, one),) = ingesting(ledger, 10, 1)
    with ledger.writer() as writer, ledger.writer() as canceller:
        settlement.prepare(writer)
        writer.commit()
        batches.cancel(canceller, batch.batch_id, "test")
        canceller.commit()
        with pytest.raises(StaleWriter, match="generation 2"):
            fence.enter(writer, holder)
        writer.rollback()
        fence.quarantine(writer, holder, "results of a test", 10)
        writer.commit()
        with pytest.raises(StaleWriter, match="CANCELLED"):  # also when the code forgets to enter the fence
            settlement.settle_arrivals(writer, one, map(accepted, range(10)), ledger.settling(batch))
    assert ledger.sql("select count(*) from nightmill.outcome") == [(0,)]
    assert ledger.sql("select what, held_generation, rows from nightmill.quarantine") == [("results of a test", 1, 10)]


def test_a_stale_writer_commits_nothing_after_a_takeover(ledger: Ledger) -> None:
    seen = Snapshot("batch_1", BatchStatus.ENDED, "completed")
    batch, ((taken, old, one),) = ingesting(ledger, 10, 1)
    _, new = ledger.taken(batch, taken)
    with ledger.writer() as writer:
        for stale in (
            lambda: fence.enter(writer, old),
            lambda: shards._edge(writer, taken, old, ShardState.SETTLED, "late"),
            lambda: provider_batches._edge(writer, old, one, ProviderBatchState.COLLECTED, "late"),
            lambda: provider_batches.polled(writer, old, one, seen, datetime.now(UTC)),
        ):
            with pytest.raises(StaleWriter):
                stale()
            writer.rollback()
        fence.enter(writer, new)
    assert new.lease == (old.lease or 0) + 1


def test_a_chunk_being_written_is_waited_for_and_its_writer_refused_afterwards(ledger: Ledger) -> None:
    batch, ((_, holder, one),) = ingesting(ledger, 20, 1)
    with ledger.writer() as writer:
        settlement.prepare(writer)
        writer.commit()
        fence.enter(writer, holder)
        settlement.settle_arrivals(writer, one, map(accepted, range(10)), ledger.settling(batch))
        cancelled = threading.Event()

        def cancel() -> None:
            with ledger.writer() as conn:
                batches.cancel(conn, batch.batch_id, "test")
            cancelled.set()

        (thread,) = in_threads(cancel)
        assert not cancelled.wait(0.3)
        writer.commit()
        assert cancelled.wait(5)
        thread.join()
        with pytest.raises(StaleWriter):
            fence.enter(writer, holder)
    assert ledger.sql("select count(*) from nightmill.outcome") == [(10,)]


def test_a_writer_that_waits_behind_a_cancel_reads_the_new_generation(ledger: Ledger) -> None:
    """The order that defeats a condition inside the insert: the writer starts first and waits for the lock."""
    batch, ((_, holder, _one),) = ingesting(ledger, 10, 1)
    refused = threading.Event()
    with ledger.writer() as canceller:
        batches.cancel(canceller, batch.batch_id, "test")

        def write() -> None:
            with ledger.writer() as conn, suppress(StaleWriter):
                try:
                    fence.enter(conn, holder)
                except StaleWriter:
                    refused.set()
                    raise

        (thread,) = in_threads(write)
        assert not refused.wait(0.3)
        canceller.commit()
        thread.join(5)
    assert refused.is_set()


def test_cancel_gets_through_within_two_seconds_while_eight_writers_ingest(ledger: Ledger) -> None:
    items = WRITERS * 12 * CHUNK
    batch, work = ingesting(ledger, items, WRITERS)
    committed = [0] * WRITERS
    faults: list[BaseException] = []
    stop = threading.Event()

    def ingest(number: int) -> None:
        shard, holder, one = work[number]
        try:
            with ledger.writer() as conn:
                settlement.prepare(conn)
                conn.commit()
                for first in range(shard.first_ordinal, shard.last_ordinal + 1, CHUNK):
                    fence.enter(conn, holder)
                    chunk = map(accepted, range(first, min(first + CHUNK, shard.last_ordinal + 1)))
                    settlement.settle_arrivals(conn, one, chunk, ledger.settling(batch))
                    conn.commit()
                    committed[number] += CHUNK
                raise AssertionError("the writer ran out of work before the cancel")
        except StaleWriter:
            stop.set()
        except BaseException as fault:
            faults.append(fault)

    threads = in_threads(*[lambda number=number: ingest(number) for number in range(WRITERS)])  # type: ignore[misc]
    deadline = time.monotonic() + 60
    while min(committed) < CHUNK and time.monotonic() < deadline:
        time.sleep(0.05)
    start = time.perf_counter()
    with ledger.writer() as conn:
        batches.cancel(conn, batch.batch_id, "test")
    waited = time.perf_counter() - start
    for thread in threads:
        thread.join(30)
    note(f"cancel beside {WRITERS} ingesting writers took {waited:.3f} s; {sum(committed)} items were settled before")
    assert not faults
    assert waited <= 2
    assert min(committed) >= CHUNK  # all of them were at work
    with ledger.writer() as conn:
        assert batches.get(conn, batch.batch_id).state is BatchState.CANCELLED
        counted = conn.execute(
            "select (select count(*) from nightmill.outcome), (select count(*) from nightmill.attempt), "
            "(select count(*) from nightmill.rows_notes)"
        ).fetchone()
    assert counted == (sum(committed),) * 3


def test_state_edges_takeovers_and_cancels_never_deadlock(ledger: Ledger) -> None:
    """Eight connections make random moves over three batches for some seconds, a ninth cancels one after the other;
    every refusal is one of ours."""
    made = [ledger.running(400, shard_count=4, prefix=f"b{number}-") for number in range(3)]
    ids = [batch.batch_id for batch, _ in made]
    shard_ids = [shard.shard_id for _, parts in made for shard in parts]
    faults: list[BaseException] = []
    done: dict[str, int] = {}
    until = time.monotonic() + 5

    def take_and_settle(dice: random.Random) -> str:
        with ledger.writer() as conn:
            shard = shards.get(conn, dice.choice(shard_ids))
            batch = batches.get(conn, shard.batch_id)
            conn.commit()
            taken, holder = shards.take_over(conn, shard, batch.generation, "test")
            conn.commit()
            first = dice.randrange(shard.first_ordinal, shard.last_ordinal)
            made = sending.intend(
                conn,
                holder,
                sending.Intent(
                    ledger.job.name,
                    f"t{dice.random()}",
                    "account",
                    "openai",
                    "echo-1",
                    range(first, first + 1),
                    10,
                    10,
                    None,
                ),
            )
            conn.commit()
            assert made is not None
            settlement.prepare(conn)
            fence.enter(conn, holder)
            lost = Arrival(first, Failure(FailureClass.TRANSIENT, "lost_line", "x"))
            settlement.settle_arrivals(conn, made, [lost], ledger.settling(batch))
            conn.commit()
            provider_batches._edge(conn, holder, made, ProviderBatchState.ABANDONED, "test")
            shards._edge(conn, taken, holder, ShardState.RETRY_WAIT, "test")
        return "took a shard"

    def block_or_go_on(dice: random.Random) -> str:
        with ledger.writer() as conn:
            batch = batches.get(conn, dice.choice(ids))
            conn.commit()
            if batch.state is BatchState.BLOCKED:
                batches.unblock(conn, batch, "test")
            else:
                batches.block(conn, batch, "test", "test")
        return "moved a batch"

    def cancel_one_after_the_other() -> None:
        for number, batch_id in enumerate(ids):
            time.sleep(max(0.0, until - 2 + 0.6 * number - time.monotonic()))
            try:
                with ledger.writer() as conn:
                    batches.cancel(conn, batch_id, "test")
                done["cancelled"] = done.get("cancelled", 0) + 1
            except BaseException as fault:
                faults.append(fault)

    def work(seed: int) -> None:
        dice = random.Random(seed)
        while time.monotonic() < until:
            action = dice.choices((take_and_settle, block_or_go_on), (2, 1))[0]
            try:
                what = action(dice)
                done[what] = done.get(what, 0) + 1
            except (StaleWriter, IllegalTransition, errors.ExclusionViolation, errors.UniqueViolation):
                done["refused"] = done.get("refused", 0) + 1
            except BaseException as fault:
                faults.append(fault)
                return

    workers = [lambda seed=seed: work(seed) for seed in range(WRITERS)]  # type: ignore[misc]
    for thread in in_threads(cancel_one_after_the_other, *workers):
        thread.join(30)
    note(f"in five seconds beside each other: {done}")
    assert not faults
    assert done["took a shard"] > 10
    assert done["moved a batch"] > 5
    assert done["cancelled"] == len(ids)
