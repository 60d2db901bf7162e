"""A run that replaces nothing for readers: who gets one, what is told of it, and which ways lead out of STAGED."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from support.pipeline import Pipeline
from support.steps import batch_of, cancel, run_unchecked

from nightmill.domain.errors import IllegalTransition, Terminal
from nightmill.domain.maintenance import Sweep
from nightmill.domain.states import BatchState
from nightmill.jobs.filters import Filter
from nightmill.jobs.rules.publishing import Publishing, decide
from nightmill.jobs.settings.job import Job
from nightmill.operations.status import line, look
from nightmill.stages import publish, report
from nightmill.storage import batches, publications
from nightmill.storage.batches import Batch
from nightmill.upkeep import maintenance

SHOWN = "select distinct batch_id from results.notes"


def preview(pipeline: Pipeline, run_id: str = "run-1") -> Batch:
    return run_unchecked(pipeline, run_id, by_hand=True, params={"limit": 3}).batch


@pytest.mark.parametrize(
    ("asked", "by_hand", "limit", "region", "publishes"),
    [
        ("auto", True, None, "north", True),
        ("auto", True, 10, "north", False),
        ("auto", True, None, "south", False),
        ("auto", False, 10, "south", True),  # what a schedule or another DAG asks for is meant
        ("yes", True, 10, "south", True),
        ("no", True, None, "north", False),
        ("no", False, None, "north", False),
    ],
)
def test_a_run_by_hand_that_sees_a_part_of_the_source_is_a_preview_unless_it_is_told_otherwise(
    asked: str, by_hand: bool, limit: int | None, region: str, publishes: bool
) -> None:
    filters = job_filters()
    decision = decide(asked, filters, {"region": region}, limit, by_hand=by_hand)
    assert decision.publish is (Publishing.YES if publishes else Publishing.NO)
    narrowed = [words for words, there in (("a limit of 10 rows", limit), ("region", region == "south")) if there]
    assert all(words in decision.narrowed for words in narrowed)
    assert bool(decision.narrowed) == bool(narrowed)


def job_filters() -> dict[str, Filter]:
    region = {"type": "enum", "values": ["north", "south"], "default": "north", "description": "Which."}
    job = Job.model_validate(
        {
            "description": "x",
            "source": {
                "conn_id": "s", "query": "select 1", "columns": {"id": "id", "text": "b"},
                "filters": {"region": region},
            },
            "provider": {"conn_id": "p", "model": "m"},
            "publish": {"view": "v"},
        }
    )  # fmt: skip
    return dict(job.source.filters)


def test_a_preview_changes_nothing_for_readers_and_its_log_and_report_say_what_they_see(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    staged = preview(pipeline)
    assert (staged.state, staged.ended_at) == (BatchState.STAGED, None)
    assert "this run is a preview (a limit of 3 rows): readers of results.notes go on seeing what" in caplog.text
    assert f"batch {staged.batch_id} is a preview: readers of results.notes see no rows, as before" in caplog.text
    assert pipeline.sql(SHOWN) == []
    assert pipeline.sql("select count(*) from nightmill.publication") == [(0,)]

    shown = run_unchecked(pipeline, "run-2").batch  # a preview keeps no other run from starting
    caplog.clear()
    again = preview(pipeline, "run-3")
    since = rf"readers of results.notes go on seeing batch {shown.batch_id}, as since "
    assert since in caplog.text
    text = report.render(report.build(pipeline.env, again.batch_id))
    assert f"this batch is a preview: {since}" in text
    assert f"select * from nightmill.rows_notes where part_id = {again.batch_id}" in text
    assert "publish = yes" in text
    query = next(one for one in text.splitlines() if one.startswith("look at it: ")).split(": ")[1].split(" (as")[0]
    assert len(pipeline.sql(query)) == 3
    assert pipeline.sql(SHOWN) == [(shown.batch_id,)]


def test_the_remedy_of_a_preview_shows_its_rows_without_paying_again(pipeline: Pipeline) -> None:
    preview(pipeline)
    made = run_unchecked(pipeline, "run-2", by_hand=True, params={"limit": 3}, publish="yes")
    assert made.counts == {"reused": 3}
    assert pipeline.sql("select count(*) from results.notes") == [(3,)]


def test_a_run_with_a_limit_that_is_published_says_what_readers_will_see(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline.freeze(by_hand=True, params={"limit": 3}, publish="yes")
    assert (
        "has a limit of 3 rows and will be published: results.notes then shows these rows and no others" in caplog.text
    )


def test_a_preview_is_left_by_a_cancel_or_for_a_later_publish_and_by_nothing_else(pipeline: Pipeline) -> None:
    first = preview(pipeline)
    with pipeline.env.ledger() as conn:
        for state in set(BatchState) - {BatchState.VALIDATING, BatchState.CANCELLED}:
            with pytest.raises(IllegalTransition):
                batches.move(conn, first, state, "no edge leads there")
        conn.rollback()
    with pytest.raises(psycopg.Error, match="not a published batch"):
        pipeline.sql(
            "insert into nightmill.published (view_name, batch_id, publish_seq, published_at, gaps) "
            "select 'notes', batch_id, 1, now(), 0 from nightmill.batch"
        )
    cancel(pipeline, first.batch_id)
    assert batch_of(pipeline, first.batch_id).state is BatchState.CANCELLED
    with pytest.raises(Terminal, match="nothing was published"):
        publish.run(pipeline.env, pipeline.live, first.batch_id, "tester")

    second = preview(pipeline, "run-2")
    with pipeline.env.ledger() as conn:
        again = batches.move(conn, second, BatchState.VALIDATING, "somebody publishes it")
        publications.publish(conn, again, "tester", lambda: None)
    assert pipeline.sql(SHOWN) == [(second.batch_id,)]


def test_a_preview_is_not_abandoned_and_retention_cancels_it_after_the_time_of_an_ended_batch(
    pipeline: Pipeline,
) -> None:
    batch_id = preview(pipeline).batch_id
    jobs = {pipeline.live.name: pipeline.live}

    def swept(sweep: Sweep, **options: Any) -> list[str]:
        done = maintenance.run(pipeline.env, jobs, pipeline.admin_dsn, sweep, **{"dry_run": False} | options)
        return [one.what for one in done]

    pipeline.clock_offset += timedelta(days=89)
    assert swept(Sweep.ABANDONED) == []
    assert [what for what in swept(Sweep.RETENTION) if "preview" in what] == []
    pipeline.clock_offset += timedelta(days=2)
    for dry_run, state in ((True, BatchState.STAGED), (False, BatchState.CANCELLED)):
        [said] = [what for what in swept(Sweep.RETENTION, dry_run=dry_run) if "preview" in what]
        assert said.startswith("preview cancelled (made ")
        assert batch_of(pipeline, batch_id).state is state
    assert batch_of(pipeline, batch_id).state_reason == "a preview that nobody published for 90 days"


def test_status_shows_a_preview_beside_what_runs(pipeline: Pipeline) -> None:
    staged = preview(pipeline)
    [standing] = look(pipeline.env)
    assert line(standing).startswith(f"notes: batch {staged.batch_id} STAGED (a preview)")
    assert not standing.alerts
