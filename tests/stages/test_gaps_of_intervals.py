"""Gaps of a run that replaces several intervals: rows of each of them can stand in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import publish_unchecked, reconciled, run_unchecked, set_faults

from nightmill.domain.errors import Blocked
from nightmill.stages import publish

DAYS = [datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2, 3)]
NIGHTS: list[dict[str, Any]] = [{"data_interval_start": DAYS[n], "data_interval_end": DAYS[n + 1]} for n in range(2)]
BOTH: dict[str, Any] = {"data_interval_start": DAYS[0], "data_interval_end": DAYS[2]}


@pytest.fixture
def two_nights(pipeline: Pipeline) -> Pipeline:
    """doc-01 and doc-02 are shown of the first night, doc-02 and doc-03 of the second; other prompts each time."""
    pipeline.edit("job.yaml", "view: notes", "view: notes, mode: by_interval")
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0, rules: [{show: previous}]}\npublish:")
    pipeline.apply()
    pipeline.sql("create table everything as select * from documents where id <= 'doc-03'")
    for number, gone in enumerate(("doc-03", "doc-01")):
        pipeline.sql("delete from documents")
        pipeline.sql("insert into documents select * from everything where id <> %s", gone)
        run_unchecked(pipeline, f"night-{number}", **NIGHTS[number])
        pipeline.write("prompt.md", f"Prompt {number}. {{{{ body }}}}")
    pipeline.sql("delete from documents")
    pipeline.sql("insert into documents select * from everything")
    set_faults(pipeline.simulator, line_error=[{"match": ".", "status": 400, "code": "bad", "times": None}])
    return pipeline


def test_a_previous_row_is_of_the_newest_interval_that_has_the_document(two_nights: Pipeline) -> None:
    made = two_nights.sql("select source_id, batch_id, result_id from results.notes order by source_id, batch_id")
    one, old_two, two, three = (result for _, _, result in made)
    two_nights.edit("job.yaml", "mode: by_interval", "mode: by_interval, max_loss: 1")
    wide = run_unchecked(two_nights, "wide", params={"replace_intervals": True}, **BOTH).batch.batch_id
    assert old_two != two
    assert two_nights.sql("select source_id, batch_id, result_id, gap_reason from results.notes order by 1") == [
        (name, wide, result, "previous: dead_lettered: bad")
        for name, result in (("doc-01", one), ("doc-02", two), ("doc-03", three))
    ]


def test_rows_taken_from_several_intervals_must_still_be_what_readers_see(two_nights: Pipeline) -> None:
    two_nights.edit("job.yaml", "mode: by_interval", "mode: by_interval, max_loss: 1")
    wide = two_nights.freeze("wide", params={"replace_intervals": True}, **BOTH)
    two_nights.drive(two_nights.plan(wide))
    reconciled(two_nights, wide)
    two_nights.sql("delete from nightmill.published")
    with pytest.raises(Blocked, match=r"as the rows of batches 1, 2, and results\.notes shows no batch in its place"):
        publish.run(two_nights.env, two_nights.live, wide.batch_id, "tester")
    publish_unchecked(two_nights, wide)
