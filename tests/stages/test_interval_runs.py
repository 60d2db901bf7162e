"""Whole runs of a job whose view shows every data interval."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from support.pipeline import Pipeline
from support.steps import batch_of, run_unchecked

from nightmill.domain.errors import Blocked, SourceError, Terminal
from nightmill.domain.states import BatchState
from nightmill.stages import publish, report

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


def test_an_older_night_is_added_and_the_report_says_what_is_shown(nightly: Pipeline) -> None:
    run_unchecked(nightly, "second", **of_night(1))
    made = run_unchecked(nightly, "first", **of_night(0))
    assert nightly.sql(SHOWN) == [(FIRST, 20), (FIRST + DAY, 20)]
    text = report.render(report.build(nightly.env, made.batch.batch_id))
    assert f"results.notes shows 2 intervals, batch {made.batch.batch_id} for the one of this run, since" in text
    again = publish.run(nightly.env, nightly.live, 1, "tester")
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
