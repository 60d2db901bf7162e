"""The stages in a row on real parts."""

from __future__ import annotations

from support.pipeline import Pipeline

from nightmill.domain.states import BatchState


def test_a_job_goes_from_source_rows_to_the_published_view(pipeline: Pipeline) -> None:
    report = pipeline.run()

    assert report.batch.state is BatchState.PUBLISHED
    assert report.counts == {"accepted": 20}
    assert report.spent.requests == 20
    rows = pipeline.sql("select source_id, title, pages from results.notes order by source_id")
    assert len(rows) == 20
    assert rows[0][0] == "doc-01"
    books = pipeline.simulator.books()
    assert books["executed"] == 20
    assert not books["duplicates"]


def test_a_second_run_reuses_every_accepted_result_and_calls_nobody(pipeline: Pipeline) -> None:
    pipeline.run("run-1")
    report = pipeline.run("run-2")

    assert report.batch.state is BatchState.PUBLISHED
    assert report.counts == {"reused": 20}
    assert report.spent.requests == 0
    assert pipeline.simulator.books()["executed"] == 20
    assert len(pipeline.sql("select * from results.notes where reused")) == 20
