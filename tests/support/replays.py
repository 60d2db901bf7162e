"""Batches with dead letters, and their replay, for several tests."""

from __future__ import annotations

from typing import Any

from nightmill.jobs.rules.dead_letters import DeadLetterFilter
from nightmill.operations import replay
from nightmill.stages import report
from nightmill.storage.batches import Batch
from support.pipeline import Pipeline
from support.steps import publish_unchecked, run_unchecked, set_faults

BAD_INPUT = {"match": "-1?[47]$", "status": 400, "code": "bad", "times": None}  # doc-05, -08, -15, -18
FILTERED = {"match": "-1?9$", "status": 400, "code": "content_filter", "times": None}  # doc-10, -20


def with_dead_letters(pipeline: Pipeline, *errors: dict[str, Any]) -> Batch:
    """A published batch whose requests with these errors ended as dead letters; the faults are gone afterwards."""
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0.5}\npublish:")
    set_faults(pipeline.simulator, line_error=list(errors))
    made = run_unchecked(pipeline)
    set_faults(pipeline.simulator)
    return made.batch


def take_over(
    pipeline: Pipeline,
    parent: int,
    run_id: str = "replay-1",
    *,
    first_try: bool = True,
    max_tries: int = 0,
    **choice: Any,
) -> Batch:
    """The first task of a run that replays a batch."""
    request = replay.ReplayRequest(
        dag_id="nightmill_test",
        run_id=run_id,
        first_try=first_try,
        parent_id=parent,
        choice=DeadLetterFilter(**choice),
        dry_run=False,
        note="the fault is gone",
        requested_by="tester",
        max_tries=max_tries,
    )
    return replay.run(pipeline.env, pipeline.live, request)


def replayed(pipeline: Pipeline, parent: int, run_id: str = "replay-1", **choice: Any) -> report.Report:
    """The whole child, published."""
    child = take_over(pipeline, parent, run_id, **choice)
    pipeline.drive(pipeline.plan(child))
    return publish_unchecked(pipeline, child)
