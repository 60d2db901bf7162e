"""Twenty readers of both isolation levels while nights are merged, mended and dropped, and while keys are published:
each look is one publication, and none fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import IsolationLevel
from support.figures import note
from support.ledger import OUTPUT, Ledger, apply, definition

from nightmill.domain import merging as rules
from nightmill.domain.contract import JobDefinition
from nightmill.domain.maintenance import refuse_failed
from nightmill.stages import merging as stage
from nightmill.storage import by_key, merging, publications
from nightmill.storage.batches import Batch

READERS = 20
DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
LOOK = "select batch_id, count(*) from results.notes group by 1 order by 1"
ROUNDS = [pytest.param(2), pytest.param(40, marks=pytest.mark.slow)]
Seen = tuple[tuple[int, int], ...]


@contextmanager
def reading(ledger: Ledger, allowed: set[Seen]) -> Iterator[list[int]]:
    """Every second reader keeps a snapshot for a while before its first look: what it sees then must still be there."""
    faults: list[BaseException] = []
    looks = [0] * READERS
    stop, ready = threading.Event(), threading.Barrier(READERS + 1)

    def look(conn: Any) -> Seen:
        return tuple(conn.execute(LOOK).fetchall())

    def read(number: int) -> None:
        try:
            with ledger.reader(autocommit=number % 2 == 0) as conn:
                conn.isolation_level = IsolationLevel.REPEATABLE_READ if number % 2 else None
                ready.wait(60)
                while not stop.is_set():
                    if number % 2:
                        conn.execute("select 1")
                        stop.wait(0.01 * number)
                    seen = {look(conn) for _ in range(3 if number % 2 else 1)}
                    assert len(seen) == 1, "a repeatable-read transaction changed publications"
                    assert seen <= allowed, seen - allowed
                    looks[number] += 1
                    if number % 2:
                        conn.commit()
                    stop.wait(0.01)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=read, args=(number,), daemon=True) for number in range(READERS)]
    for thread in threads:
        thread.start()
    ready.wait(60)
    try:
        yield looks
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert not faults
    assert min(looks) > 0


class Shown:
    """What readers may see: every list so far, noted before it is shown."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.allowed: set[Seen] = set()
        self.by_day: dict[int, Batch] = {}

    def night(self, day: int, items: int) -> Batch:
        start = FIRST + day * DAY
        return self.ledger.validating(items, interval_start=start, interval_end=start + DAY)

    def publish(self, day: int, batch: Batch) -> None:
        self.by_day[day] = batch
        self.expect()
        with self.ledger.writer() as conn:
            built = merging.build_beside(conn, batch, publications.current(conn, "notes"))
            publications.publish(conn, batch, "tester", lambda: None, built)

    def expect(self) -> None:
        self.allowed.add(tuple(sorted((one.batch_id, one.item_count or 0) for one in self.by_day.values())))

    def sweep(self, job: JobDefinition) -> None:
        refuse_failed(stage.run({"notes": job}, self.ledger.admin_dsn))


@pytest.mark.parametrize("rounds", ROUNDS)
def test_merging_mending_and_dropping_nights(ledger: Ledger, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MERGE_ABOVE", 4)
    ledger.job = definition(mode="by_interval")
    apply(ledger.admin_dsn, ledger.job)
    shown = Shown(ledger)
    for day in range(6):
        shown.publish(day, shown.night(day, 20 + day))
    made = [(day, shown.night(day, 30 + day)) for one in range(rounds) for day in (6 + 2 * one, 7 + 2 * one, 2 + one)]
    with reading(ledger, shown.allowed) as looks:
        for number, (day, batch) in enumerate(made):
            shown.publish(day, batch)
            if number % 2 == 0:
                shown.sweep(ledger.job)
        keep = len(shown.by_day) - 3
        shown.by_day = dict(sorted(shown.by_day.items())[-keep:])
        shown.expect()
        shown.sweep(definition(mode=f"by_interval, keep_intervals: {keep}"))
        time.sleep(0.3)
        shown.sweep(ledger.job)
    note(f"{READERS} readers looked {sum(looks)} times during {len(made)} publications and {len(made) // 2 + 3} sweeps")
    kinds = dict(ledger.sql("select kind, count(*) from nightmill.publication group by 1"))
    assert kinds["merge"] >= 1 and kinds["retention"] == 1


@pytest.mark.parametrize("rounds", ROUNDS)
def test_publishing_by_key(ledger: Ledger, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "MOST_ATTACHED", 3)
    ledger.job = definition(output=OUTPUT + "    gone: bool | None = None\n", mode="by_key, deleted: gone")
    apply(ledger.admin_dsn, ledger.job)
    shown = Shown(ledger)
    made = [shown.night(day, 40 if day == 0 else 1 + day % 30) for day in range(2 + 2 * rounds)]
    newest: dict[int, int] = {}

    def publish(batch: Batch) -> None:
        newest.update(dict.fromkeys(range(batch.item_count or 0), batch.batch_id))
        counts = {one: list(newest.values()).count(one) for one in newest.values()}
        shown.allowed.add(tuple(sorted(counts.items())))
        with ledger.writer() as conn:
            built = by_key.build(conn, batch, ledger.job, publications.current(conn, "notes"))
            publications.publish(conn, batch, "tester", lambda: None, built)

    publish(made[0])
    with reading(ledger, shown.allowed) as looks:
        for batch in made[1:]:
            publish(batch)
            shown.sweep(ledger.job)
    note(f"{READERS} readers looked {sum(looks)} times during {len(made) - 1} publications by key")
