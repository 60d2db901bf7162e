"""Twenty readers of both isolation levels in every mode of publishing, while batches are published, refused, rolled
back, merged and dropped: each look is one publication, none fails, and what hangs on the view stays."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import IsolationLevel
from support.figures import note
from support.ledger import OUTPUT, Ledger, apply, definition

from nightmill.domain import merging as rules
from nightmill.domain.errors import Blocked
from nightmill.domain.maintenance import refuse_failed
from nightmill.storage import by_key, holds, merging, publications, rollbacks
from nightmill.storage.batches import Batch
from nightmill.storage.part_builds import Built
from nightmill.storage.session import Connection
from nightmill.upkeep import merging as stage

READERS = 20
DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
LOOK = "select batch_id, count(*) from results.notes group by 1 order by 1"
MODES = {"replace": "replace", "by_interval": "by_interval", "by_key": "by_key, deleted: gone"}
ROUNDS = [pytest.param(1), pytest.param(15, marks=pytest.mark.slow)]
Seen = tuple[tuple[int, int], ...]


class Reader:
    """One session. Every second one keeps a snapshot for a while before its first look, and then between looks; of the
    others, half use a statement that was prepared before everything, half a view that depends on ours."""

    def __init__(self, ledger: Ledger, number: int, allowed: set[Seen]) -> None:
        self.ledger, self.number, self.allowed, self.looks = ledger, number, allowed, 0
        self.snapshots = number % 2 == 1
        self.query = LOOK if number % 4 else "select batch_id, count from public.by_batch order by 1"

    def read(self, ready: threading.Barrier, stop: threading.Event) -> None:
        with self.ledger.reader(autocommit=not self.snapshots) as conn:
            conn.isolation_level = IsolationLevel.REPEATABLE_READ if self.snapshots else None
            conn.prepare_threshold = 0
            self._look(conn)
            conn.execute("commit") if self.snapshots else None
            ready.wait(60)
            while not stop.is_set():
                if self.snapshots:
                    self._transaction(conn, stop)
                else:
                    self._look(conn)
                stop.wait(0.01)

    def _transaction(self, conn: Connection, stop: threading.Event) -> None:
        conn.execute("select 1")  # its snapshot is taken; it has not touched the view yet
        seen = set()
        for _ in range(3):
            stop.wait(0.004 * self.number)
            seen.add(self._look(conn))
        assert len(seen) == 1, "a repeatable-read transaction changed publications"
        conn.commit()

    def _look(self, conn: Connection) -> Seen:
        seen = tuple(conn.execute(self.query, prepare=True).fetchall())  # type: ignore[call-overload]
        assert seen in self.allowed, seen
        self.looks += 1
        return seen


@contextmanager
def reading(ledger: Ledger, allowed: set[Seen]) -> Iterator[list[Reader]]:
    faults: list[BaseException] = []
    readers = [Reader(ledger, number, allowed) for number in range(READERS)]
    stop, ready = threading.Event(), threading.Barrier(READERS + 1)

    def read(one: Reader) -> None:
        try:
            one.read(ready, stop)
        except BaseException as fault:
            faults.append(fault)
            ready.abort()

    threads = [threading.Thread(target=read, args=(one,), daemon=True) for one in readers]
    for thread in threads:
        thread.start()
    try:
        ready.wait(60)
        yield readers
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
        assert not faults, faults
    assert all(one.looks > 1 for one in readers)


class Story:
    """A view and what readers may see of it: every list, noted before it is shown. A list names the batch of each day,
    by key that of each item."""

    def __init__(self, ledger: Ledger, mode: str) -> None:
        self.ledger, self.mode = ledger, mode
        self.allowed: set[Seen] = set()
        self.now: dict[int, int] = {}
        self.lists: dict[int, dict[int, int]] = {}
        self.items: dict[int, int] = {}

    def batch(self, day: int) -> Batch:
        start = FIRST + day * DAY
        made = self.ledger.validating(20 + day, interval_start=start, interval_end=start + DAY)
        self.items[made.batch_id] = 20 + day
        return made

    def publish(self, day: int, batch: Batch, refusal: str | None = None) -> None:
        """As the stage does."""

        def admit() -> None:
            if refusal:
                raise Blocked(refusal, "Nothing.")

        after = self._after(day, batch.batch_id)
        if not refusal:
            self._expect(after)
        with self.ledger.writer() as conn:
            shown = publications.publish(conn, batch, "tester", admit, self._build(conn, batch))
        self.now = self.lists[shown.publish_seq] = after

    def go_back(self, after: dict[int, int], to: int | None = None, day: int | None = None) -> None:
        """Roll back, and release what that holds."""
        self._expect(after)
        interval = None if day is None else (FIRST + day * DAY, FIRST + (day + 1) * DAY)
        with self.ledger.writer() as conn:
            plan = rollbacks.plan(conn, "notes", to, interval)
            built = rollbacks.build(conn, plan)
            shown, _ = rollbacks.carry_out(conn, plan, "tester", reason=None, revoke=False, built=built)
            holds.release(conn, holds.open_of(conn, "notes"), "tester")
        self.now = self.lists[shown.publish_seq] = after

    def sweep(self, keep: int | None = None) -> None:
        job = self.ledger.job
        if keep is not None:
            self.now = dict(sorted(self.now.items())[-keep:])
            self._expect(self.now)
            job = definition(mode=f"by_interval, keep_intervals: {keep}")
        refuse_failed(stage.run({"notes": job}, self.ledger.admin_dsn))

    def check(self) -> None:
        assert tuple(self.ledger.sql(LOOK)) == self._seen(self.now)
        self.ledger.sql("refresh materialized view public.copied")
        for dependant in ("public.by_batch", "public.copied"):
            assert tuple(self.ledger.sql(f"select * from {dependant} order by 1")) == self._seen(self.now)

    def _build(self, conn: Connection, batch: Batch) -> Built | None:
        shown = publications.current(conn, "notes")
        if self.mode == "by_key":
            return by_key.build(conn, batch, self.ledger.job, shown)
        return merging.build_beside(conn, batch, shown) if self.mode == "by_interval" else None

    def _after(self, day: int, batch_id: int) -> dict[int, int]:
        if self.mode == "by_key":
            return self.now | dict.fromkeys(range(self.items[batch_id]), batch_id)
        return self.now | {day: batch_id} if self.mode == "by_interval" else {0: batch_id}

    def _expect(self, after: dict[int, int]) -> None:
        self.allowed.add(self._seen(after))

    def _seen(self, after: dict[int, int]) -> Seen:
        counts = Counter(after.values())
        rows = counts if self.mode == "by_key" else {one: self.items[one] for one in counts}
        return tuple(sorted(rows.items()))


HANGING = """
create role analyst;
grant select on results.notes to analyst;
comment on column results.notes.title is 'What it is called';
create view public.by_batch as select batch_id, count(*) from results.notes group by 1;
grant select on public.by_batch to nightmill_reader;
create materialized view public.copied as select * from public.by_batch
"""
FACTS = """
select shown.oid, shown.relacl::text, col_description(shown.oid, attnum)
from pg_class as shown join pg_attribute on attrelid = shown.oid and attname = 'title'
where shown.oid = 'results.notes'::regclass
"""


@pytest.fixture
def hanging() -> Iterator[Any]:
    """Makes what hangs on the view, and drops the role at the end: it belongs to no database."""
    used: list[Ledger] = []

    def make(ledger: Ledger) -> None:
        used.append(ledger)
        ledger.sql(HANGING)

    yield make
    for ledger in used:
        ledger.sql("drop owned by analyst")
        ledger.sql("drop role analyst")


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("mode", MODES)
def test_readers_see_one_publication_whatever_happens(
    ledger: Ledger, hanging: Any, mode: str, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MERGE_ABOVE", 3)
    monkeypatch.setattr(stage, "MOST_ATTACHED", 4)
    ledger.job = definition(output=OUTPUT + "    gone: bool | None = None\n", mode=MODES[mode])
    apply(ledger.admin_dsn, ledger.job)
    story = Story(ledger, mode)
    for day in range(6 if mode == "by_interval" else 2):
        story.publish(day, story.batch(day))
    hanging(ledger)
    facts = ledger.sql(FACTS)
    made = [(day, story.batch(day)) for one in range(rounds) for day in range(6 + 2 * one, 8 + 2 * one)]
    mends = [(1, story.batch(1)) for _ in range(rounds)] if mode == "by_interval" else []
    with reading(ledger, story.allowed) as readers:
        for number, (day, batch) in enumerate(made):
            with pytest.raises(Blocked, match="not this time"):
                story.publish(day, batch, "not this time")
            story.publish(day, batch)
            story.sweep()
            if number % 2:
                newest = sorted(story.lists)
                story.go_back(story.lists[newest[-2]], to=newest[-2])
                story.go_back(story.lists[newest[-1]], to=newest[-1])
                story.sweep()
        for day, batch in mends:
            before = story.now
            story.publish(day, batch)
            story.go_back(before, day=day)
            story.go_back({one: by for one, by in before.items() if one != 0}, day=0)
            story.go_back(before, to=max(seq for seq, one in story.lists.items() if one == before))
            story.sweep()
        if mode == "by_interval":
            story.sweep(keep=3)
    story.check()
    assert ledger.sql(FACTS) == facts
    kinds = dict(ledger.sql("select kind, count(*) from nightmill.publication group by 1"))
    note(f"{mode}: {READERS} readers looked {sum(one.looks for one in readers)} times; publications: {kinds}")
    assert set(kinds) == {"publish", "rollback"} | ({"merge", "retention"} if mode == "by_interval" else set())
