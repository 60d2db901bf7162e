"""Whole runs of a job whose view shows every data interval."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from support.pipeline import Pipeline
from support.steps import batch_of, publish_unchecked, run_unchecked

from nightmill.domain.errors import Blocked, SourceError, Terminal
from nightmill.domain.states import BatchState
from nightmill.stages import publish, report
from nightmill.storage.batches import Batch

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
SHOWN = "select data_interval_start, count(*) from results.notes group by 1 order by 1"


@pytest.fixture
def nightly(pipeline: Pipeline) -> Pipeline:
    """The job of the pipeline with one batch shown for each interval."""
    pipeline.edit("job.yaml", "publish: {view: notes}", "publish: {view: notes, mode: by_interval}")
    pipeline.apply()
    return pipeline


def of_night(number: int, days: int = 1) -> dict[str, datetime]:
    return {"data_interval_start": FIRST + number * DAY, "data_interval_end": FIRST + (number + days) * DAY}


def finish(nightly: Pipeline, batch: Batch) -> None:
    nightly.drive(nightly.plan(batch))
    publish_unchecked(nightly, batch)


def test_an_older_night_is_added_and_the_report_says_what_is_shown(nightly: Pipeline) -> None:
    run_unchecked(nightly, "second", **of_night(1))
    made = run_unchecked(nightly, "first", **of_night(0))
    assert nightly.sql(SHOWN) == [(FIRST, 20), (FIRST + DAY, 20)]
    text = report.render(report.build(nightly.env, made.batch.batch_id))
    assert f"results.notes shows 2 intervals, batch {made.batch.batch_id} for the one of this run, since" in text
    again = publish.run(nightly.env, 1, "tester")
    assert again is not None
    assert (again.batch_id, again.data_interval_start) == (1, FIRST + DAY)


def test_a_run_without_an_interval_or_with_an_empty_one_is_refused(nightly: Pipeline) -> None:
    for given in ({}, of_night(0, days=0), of_night(0) | {"data_interval_end": None}):
        with pytest.raises(SourceError, match=r"this run has .*Remedy: Fill in the data interval of a new run"):
            nightly.freeze("run", **given)
    assert nightly.sql("select count(*) from nightmill.batch") == [(0,)]


def test_an_interval_that_overlaps_is_refused_before_anything_is_paid_and_goes_on_with_the_option(
    nightly: Pipeline,
) -> None:
    run_unchecked(nightly, "night", **of_night(2))
    nightly.sql("update documents set version = '2', body = body || ' More.'")
    paid = nightly.simulator.books(summary=True)["executed"]
    batch = nightly.freeze("week", **of_night(0, days=7))
    for _ in ("first", "cleared"):
        with pytest.raises(Blocked, match=r"overlaps what results.notes shows: .*replace_intervals = true"):
            nightly.plan(batch)
    blocked = batch_of(nightly, batch.batch_id)
    assert (blocked.state, blocked.blocked_by) == (BatchState.BLOCKED, "preflight")
    assert nightly.simulator.books(summary=True)["executed"] == paid
    with pytest.raises(Terminal, match="works on the same data interval"):
        nightly.freeze("week-2", **of_night(0, days=7))
    nightly.sql("update nightmill.batch set params = '{\"replace_intervals\": true}' where batch_id = 2")
    nightly.drive(nightly.plan(batch))
    nightly.finish(batch)
    assert nightly.sql(SHOWN) == [(FIRST, 20)]
    assert nightly.sql("select distinct batch_id from results.notes") == [(batch.batch_id,)]


def test_a_backfill_of_a_night_exchanges_it_and_leaves_the_others(nightly: Pipeline) -> None:
    first = run_unchecked(nightly, "first", **of_night(0)).batch
    run_unchecked(nightly, "second", **of_night(1))
    nightly.sql("delete from documents where id > 'doc-15'")
    mended = nightly.freeze("first", first_try=False, max_tries=6, backfilled=True, **of_night(0))
    assert nightly.sql(SHOWN) == [(FIRST, 20), (FIRST + DAY, 20)]
    finish(nightly, mended)
    assert nightly.sql(SHOWN) == [(FIRST, 15), (FIRST + DAY, 20)]
    assert batch_of(nightly, first.batch_id).state is BatchState.PUBLISHED
    assert nightly.simulator.books(summary=True)["executed"] == 20


def test_a_backfill_waits_for_a_run_by_hand_of_its_night_and_then_goes_on(nightly: Pipeline) -> None:
    run_unchecked(nightly, "scheduled", **of_night(0))
    by_hand = nightly.freeze("by hand", **of_night(0))
    cleared = {"first_try": False, "backfilled": True, **of_night(0)}
    with pytest.raises(Terminal, match=f"Batch {by_hand.batch_id} of run by hand is PLANNING"):
        nightly.freeze("scheduled", max_tries=6, **cleared)
    finish(nightly, by_hand)
    mended = nightly.freeze("scheduled", max_tries=7, **cleared)
    with pytest.raises(Terminal, match=f"Batch {mended.batch_id} of run scheduled is PLANNING"):
        nightly.freeze("another", **of_night(0))
    finish(nightly, mended)
    assert nightly.sql("select distinct batch_id from results.notes") == [(mended.batch_id,)]


def test_of_runs_of_one_interval_that_begin_at_the_same_moment_one_has_a_batch(nightly: Pipeline) -> None:
    begun: list[Batch] = []
    refused: list[str] = []
    together = threading.Barrier(4)

    def begin(run_id: str) -> None:
        together.wait(30)
        try:
            begun.append(nightly.freeze(run_id, **of_night(0)))
        except Terminal as refusal:
            refused.append(str(refusal))

    threads = [threading.Thread(target=begin, args=(f"run-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (len(begun), len(refused)) == (1, 3)
    assert all(f"Batch {begun[0].batch_id} of run {begun[0].run_id}" in one for one in refused)
    assert nightly.sql("select count(*) from nightmill.batch") == [(1,)]
