"""Whole runs of a job whose view shows the newest row of every source id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from support.pipeline import Pipeline
from support.steps import run_unchecked, set_faults

from nightmill.domain.errors import Blocked, BrokenJobFolder, SourceError
from nightmill.jobs.check.definition import check_definition
from nightmill.stages import publish

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
SHOWN = "select batch_id, count(*) from results.notes group by 1 order by 1"


@pytest.fixture
def keyed(pipeline: Pipeline) -> Pipeline:
    """The job of the pipeline by key; the source marks deleted ids."""
    pipeline.sql("alter table documents add column gone boolean")
    pipeline.edit("job.yaml", "select id, version, tenant, body", "select id, version, tenant, body, gone")
    pipeline.edit("job.yaml", "publish: {view: notes}", "publish: {view: notes, mode: by_key, deleted: gone}")
    pipeline.apply()
    return pipeline


def of_night(number: int) -> dict[str, datetime]:
    return {"data_interval_start": FIRST + number * DAY, "data_interval_end": FIRST + (number + 1) * DAY}


def test_deltas_deletions_and_an_old_backfill(keyed: Pipeline) -> None:
    run_unchecked(keyed, "all", **of_night(1))
    assert keyed.sql(SHOWN) == [(1, 20)]
    ids = [one for (one,) in keyed.sql("select id from documents order by id limit 3")]
    keyed.sql("update documents set gone = true, version = '2' where id = %s", ids[0])
    keyed.sql("update documents set version = '2', body = body || ' More.' where id = %s", ids[1])
    keyed.sql("create table others as select * from documents where id <> all (%s)", ids[:2])
    keyed.sql("delete from documents where id <> all (%s)", ids[:2])
    asked = keyed.simulator.books(summary=True)["executed"]
    delta = run_unchecked(keyed, "delta", **of_night(2))
    assert keyed.simulator.books(summary=True)["executed"] == asked + 1  # a deleted id is not sent
    assert keyed.sql(SHOWN) == [(1, 18), (delta.batch.batch_id, 1)]
    assert keyed.sql("select count(*) from results.notes where source_id = %s::text", ids[0]) == [(0,)]

    keyed.sql("insert into documents select * from others")
    keyed.sql("update documents set gone = false")
    old = run_unchecked(keyed, "old", **of_night(0))
    assert keyed.sql(SHOWN) == [(1, 18), (delta.batch.batch_id, 1)]
    again = publish.run(keyed.env, keyed.live, old.batch.batch_id, "tester")
    assert again is not None


def test_compare_judges_what_a_delta_changes_and_not_what_it_leaves_as_it_is_shown(keyed: Pipeline) -> None:
    keyed.edit("job.yaml", "publish:", "compare: {max_changed_share: 0.6}\npublish:")
    run_unchecked(keyed, "all", **of_night(0))
    run_delta(keyed, "doc-01", "doc-02", changed="doc-02")
    delta = run_delta(keyed, "doc-02", "doc-03", "doc-99", changed="doc-03")  # of another batch than the last one
    [(details,)] = keyed.sql(
        "select details from nightmill.gate_verdict where gate = 'compare' and batch_id = %s", delta
    )
    whole = next(one for one in details["slices"] if one["by"] == "all")
    assert (details["baseline"], details["findings"]) == (2, [])
    assert whole["rows"] == {"added": 1, "gone": 18, "kept": 2, "changed": 1}
    with pytest.raises(Blocked, match=r"100\.0% of the rows that stayed have changed"):
        run_delta(keyed, "doc-04", changed="doc-04")
    assert keyed.sql(SHOWN) == [(1, 17), (2, 1), (3, 3)]


def run_delta(keyed: Pipeline, *ids: str, changed: str) -> int:
    """A run of a few ids, one of which has other words than before."""
    keyed.sql("create table if not exists everything as select * from documents")
    keyed.sql("delete from documents")
    keyed.sql("insert into documents select * from everything where id = any (%s)", list(ids))
    if "doc-99" in ids:
        keyed.documents([("doc-99", "1", "acme", "A new text.")])
    keyed.sql("update documents set version = '2', body = 'Other words. ' || body where id = %s", changed)
    keyed.sql("update everything set version = '2', body = 'Other words. ' || body where id = %s", changed)
    return run_unchecked(keyed, f"delta of {changed}", **of_night(int(changed[-2:]))).batch.batch_id


def test_a_mark_that_is_no_boolean_is_refused(keyed: Pipeline) -> None:
    keyed.edit("job.yaml", "body, gone", "body, 'yes' as gone")
    with pytest.raises(SourceError, match=r"'gone' marks deleted ids .* no boolean"):
        keyed.freeze("run", **of_night(0))
    keyed.edit("job.yaml", "deleted: gone", "deleted: pages")
    with pytest.raises(BrokenJobFolder, match=r"'pages' of output.py is no boolean but bigint"):
        check_definition(keyed.live)
    keyed.edit("job.yaml", "mode: by_key, deleted: pages", "deleted: gone")
    with pytest.raises(BrokenJobFolder, match=r"publish.mode is replace, which deletes no single ids"):
        check_definition(keyed.live)


def test_a_gap_takes_no_answers_place_and_gives_way_to_one_of_an_older_night(keyed: Pipeline) -> None:
    keyed.edit("job.yaml", "publish:", "gaps: {min_completion: 0, rules: [{show: null_row}]}\npublish:")
    run_unchecked(keyed, "all", **of_night(0))
    keyed.sql("delete from documents")
    keyed.documents([("doc-01", "2", "acme", "Text, mended."), ("doc-99", "1", "acme", "A new text.")])
    set_faults(keyed.simulator, line_error=[{"match": "-[01]$", "status": 400, "code": "bad", "times": None}])
    run_unchecked(keyed, "failing", **of_night(2))
    both = (
        "select source_id, batch_id, result_id is null, gap_reason from results.notes "
        "where source_id in ('doc-01', 'doc-99') order by 1"
    )
    assert keyed.sql(both) == [
        ("doc-01", 1, False, None), ("doc-99", 2, True, "dead_lettered: bad"),
    ]  # fmt: skip
    set_faults(keyed.simulator)
    older = run_unchecked(keyed, "older", params={"reprocess": True}, **of_night(1)).batch.batch_id
    assert keyed.sql(both) == [("doc-01", older, False, None), ("doc-99", older, False, None)]
    assert keyed.sql("select count(*) from results.notes") == [(21,)]
