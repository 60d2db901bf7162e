"""A process that merges, or publishes by key, is killed at its statements: readers see what was shown or what comes
next, and the next try ends as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import psycopg
import pytest
from support.ledger import OUTPUT, Ledger, apply, definition

from nightmill.domain import merging as rules
from nightmill.domain.maintenance import refuse_failed
from nightmill.domain.states import BatchState
from nightmill.storage import batches, by_key, publications
from nightmill.storage.batches import Batch
from nightmill.upkeep import merging as stage

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
SHOWN = "select batch_id, count(*), min(source_id), max(pages) from results.notes group by 1 order by 1"
PARTS = "select count(*) from pg_inherits where inhparent = 'nightmill.rows_notes'::regclass"
LEFT = (
    "select count(*) from pg_class where relnamespace = 'nightmill'::regnamespace and relkind = 'r' "
    "and relname like 'rows\\_-%' and not relispartition"
)
FORMS = [pytest.param(7, id="by lot"), pytest.param(None, id="all", marks=pytest.mark.slow)]


def killed(work: Callable[[], object], at: int | None) -> int:
    """Run it in a process that is killed right before its statement `at`; how many statements it came to."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        numbers = count()
        real = psycopg.Connection.execute

        def execute(self: Any, *arguments: Any, **options: Any) -> Any:
            os.write(writing, b".")
            if next(numbers) == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(self, *arguments, **options)

        psycopg.Connection.execute = execute  # type: ignore[method-assign]
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as points:
        seen = len(points.read())
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == (0 if at is None else -signal.SIGKILL)
    return seen


def drawn(most: int, sample: int | None) -> list[int]:
    points = list(range(most))
    return points if sample is None else sorted(random.Random(14).sample(points, min(sample, most)))


def of_day(ledger: Ledger, day: int, items: int) -> Batch:
    return ledger.validating(items, interval_start=FIRST + day * DAY, interval_end=FIRST + (day + 1) * DAY)


@pytest.mark.parametrize("sample", FORMS)
def test_a_merging_that_is_killed_is_done_by_the_next_one(
    ledger: Ledger, sample: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MERGE_ABOVE", 4)
    ledger.job = definition(mode="by_interval")
    apply(ledger.admin_dsn, ledger.job)

    def sweep() -> None:
        refuse_failed(stage.run({"notes": ledger.job}, ledger.admin_dsn))

    day = iter(range(1_000))

    def five_more() -> list[tuple[Any, ...]]:
        for number, _ in zip(day, range(5), strict=False):
            ledger.publish(of_day(ledger, number, 3 + number % 7))
        return ledger.sql(SHOWN)

    five_more()
    most = killed(sweep, None)
    for at in drawn(most, sample):
        before = five_more()
        killed(sweep, at)
        assert ledger.sql(SHOWN) == before, f"killed at statement {at}"
        sweep()
        assert ledger.sql(SHOWN) == before
        assert ledger.sql(PARTS)[0][0] <= 4, f"killed at statement {at}"
        assert ledger.sql(LEFT) == [(0,)]


@pytest.mark.parametrize("sample", FORMS)
def test_a_publishing_by_key_that_is_killed_is_done_by_the_next_try(ledger: Ledger, sample: int | None) -> None:
    ledger.job = definition(output=OUTPUT + "    gone: bool | None = None\n", mode="by_key, deleted: gone")
    apply(ledger.admin_dsn, ledger.job)

    def publish(batch: Batch) -> None:
        with ledger.writer() as conn:
            built = by_key.build(conn, batch, ledger.job, publications.current(conn, "notes"))
            publications.publish(conn, batch, "tester", lambda: None, built)
            conn.commit()

    def shown() -> dict[int, int]:  # the batch of each id; pages is the number of the id
        return dict(ledger.sql("select pages, batch_id from results.notes"))

    first = of_day(ledger, 0, 9)
    most = killed(lambda: publish(first), None)
    model = shown()
    for day, at in enumerate(drawn(most, sample), start=1):
        batch = of_day(ledger, day, 1 + day % 9)
        after = model | dict.fromkeys(range(1 + day % 9), batch.batch_id)
        killed(lambda batch=batch: publish(batch), at)
        with ledger.writer() as conn:
            state = batches.get(conn, batch.batch_id).state
        assert shown() == (after if state is BatchState.PUBLISHED else model), f"killed at statement {at}"
        if state is not BatchState.PUBLISHED:
            publish(batch)
        assert shown() == after
        assert ledger.sql(LEFT) == [(0,)]
        model = after
