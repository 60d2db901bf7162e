"""A night that was merged with others is still the night that people replay, run again and keep."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from support.pipeline import Pipeline
from support.replays import BAD_INPUT, replayed
from support.steps import run_unchecked, set_faults

from nightmill.domain import merging as rules
from nightmill.domain.errors import Terminal
from nightmill.domain.maintenance import Sweep, refuse_failed
from nightmill.upkeep import maintenance
from nightmill.upkeep import merging as stage

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
SHOWN = "select data_interval_start, batch_id, count(*) from results.notes group by 1, 2 order by 1"
PARTS = "select array_agg(distinct part_id order by part_id) from nightmill.rows_notes"


@pytest.fixture
def nightly(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setattr(rules, "MERGE_ABOVE", 1)
    pipeline.edit("job.yaml", "publish: {view: notes}", "publish: {view: notes, mode: by_interval}")
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0.5}\nmaintenance: {keep_published: 1}\npublish:")
    pipeline.apply()
    return pipeline


def of_night(number: int) -> dict[str, datetime]:
    return {"data_interval_start": FIRST + number * DAY, "data_interval_end": FIRST + (number + 1) * DAY}


def sweep(pipeline: Pipeline, kind: Sweep = Sweep.MERGING) -> list[str]:
    done = maintenance.run(pipeline.env, {"notes": pipeline.live}, pipeline.admin_dsn, kind, dry_run=False)
    refuse_failed(done)
    return [one.what for one in done]


def test_a_merged_night_is_replayed_run_again_and_kept(nightly: Pipeline) -> None:
    set_faults(nightly.simulator, line_error=[BAD_INPUT])
    first = run_unchecked(nightly, "first", **of_night(0)).batch
    set_faults(nightly.simulator)
    run_unchecked(nightly, "second", **of_night(1))  # what failed before is not asked again
    before = nightly.sql(SHOWN)
    assert len(sweep(nightly)) == 2
    assert nightly.sql(SHOWN) == before
    assert nightly.sql(PARTS) == [([-1],)]

    nightly.clock_offset = timedelta(days=400)
    assert not [what for what in sweep(nightly, Sweep.RETENTION) if "rows, items" in what]

    nightly.clock_offset = timedelta()
    child = replayed(nightly, first.batch_id).batch
    assert nightly.sql(SHOWN) == [(FIRST, child.batch_id, 20), (FIRST + DAY, 2, 16)]
    assert nightly.sql(PARTS) == [([-2, -1, child.batch_id],)]

    again = run_unchecked(nightly, "again", **of_night(1)).batch
    assert nightly.sql(SHOWN) == [(FIRST, child.batch_id, 20), (FIRST + DAY, again.batch_id, 20)]
    sweep(nightly)
    assert nightly.sql(SHOWN) == [(FIRST, child.batch_id, 20), (FIRST + DAY, again.batch_id, 20)]


def test_a_batch_whose_rows_were_taken_away_is_not_replayed_to_half(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "MOST_ATTACHED", 1)
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0.5}\nmaintenance: {keep_published: 1}\npublish:")
    set_faults(pipeline.simulator, line_error=[BAD_INPUT])
    first = run_unchecked(pipeline, "first").batch
    set_faults(pipeline.simulator)
    run_unchecked(pipeline, "second", params={"reprocess": True})
    assert sweep(pipeline) == ["results.notes: 1 part taken away that no publication needs"]
    with pytest.raises(Terminal, match="the rows of batch 1 were removed by retention"):
        replayed(pipeline, first.batch_id)
