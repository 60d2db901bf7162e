"""Whole runs of a job whose view shows the newest row of every source id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from support.pipeline import Pipeline
from support.steps import run_unchecked

from nightmill.domain.errors import BrokenJobFolder, SourceError
from nightmill.stages import publish
from nightmill.validators.definition import check_definition

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
    again = publish.run(keyed.env, old.batch.batch_id, "tester")
    assert again is not None


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
