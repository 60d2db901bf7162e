"""What a backfill makes of a run that was there before: Airflow clears it, with all its tasks."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import batch_of, paid_once, publish_unchecked, run_unchecked

from nightmill.domain.errors import Terminal
from nightmill.domain.states import BatchState
from nightmill.stages import publish
from nightmill.storage.batches import Batch

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
SHOWN = "select distinct batch_id from results.notes"
NIGHTS = "select data_interval_start, count(*) from results.notes group by 1 order by 1"


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


def test_a_backfill_of_a_published_run_reads_the_source_again_and_its_retry_returns_the_new_batch(
    pipeline: Pipeline,
) -> None:
    first = run_unchecked(pipeline, **of_night(0)).batch
    pipeline.sql("update documents set version = '2', body = 'New text.' where id = 'doc-03'")
    pipeline.sql("delete from documents where id = 'doc-04'")

    again = {"first_try": False, "max_tries": 6, **of_night(0)}
    assert pipeline.freeze(**again).batch_id == first.batch_id  # a clear by a person
    mended = pipeline.freeze(backfilled=True, **again)
    assert (mended.run_id, mended.incarnation, mended.item_count) == (first.run_id, 2, 19)
    assert pipeline.freeze(backfilled=True, **again).batch_id == mended.batch_id  # a retry
    pipeline.drive(pipeline.plan(mended))
    made = publish_unchecked(pipeline, mended)
    assert made.counts == {"reused": 18, "accepted": 1}
    assert pipeline.sql(SHOWN) == [(mended.batch_id,)]
    assert pipeline.freeze(backfilled=True, **again).batch_id == mended.batch_id
    with pytest.raises(Terminal, match="was published before"):
        publish.run(pipeline.env, pipeline.live, first.batch_id, "tester")
    paid_once(pipeline, 21)


@pytest.mark.parametrize(("end", "asked"), [("STAGED", {"publish": "no"}), ("ESTIMATED", {"dry_run": True})])
def test_a_backfill_of_a_preview_or_an_estimate_makes_another_one(
    pipeline: Pipeline, end: str, asked: dict[str, Any]
) -> None:
    batch = pipeline.freeze(**asked)
    pipeline.drive(pipeline.plan(batch))
    publish_unchecked(pipeline, batch)
    assert batch_of(pipeline, batch.batch_id).state == end
    again = pipeline.freeze(first_try=False, max_tries=6, backfilled=True, **asked)
    assert (again.incarnation, again.state) == (2, BatchState.PLANNING)


def test_a_backfill_of_a_run_whose_batch_lives_goes_on_with_it(
    pipeline: Pipeline,
) -> None:
    batch = pipeline.freeze()
    pipeline.plan(batch)
    assert pipeline.freeze(first_try=False, max_tries=6, backfilled=True).batch_id == batch.batch_id


def test_a_backfill_of_a_night_exchanges_it_and_leaves_the_others(nightly: Pipeline) -> None:
    first = run_unchecked(nightly, "first", **of_night(0)).batch
    run_unchecked(nightly, "second", **of_night(1))
    nightly.sql("delete from documents where id > 'doc-15'")
    mended = nightly.freeze("first", first_try=False, max_tries=6, backfilled=True, **of_night(0))
    assert nightly.sql(NIGHTS) == [(FIRST, 20), (FIRST + DAY, 20)]
    finish(nightly, mended)
    assert nightly.sql(NIGHTS) == [(FIRST, 15), (FIRST + DAY, 20)]
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
    assert nightly.sql(SHOWN) == [(mended.batch_id,)]


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
