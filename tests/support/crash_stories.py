"""For each stage of the crash sweep: how a job gets to where the stage begins, and how it goes on after a crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from nightmill.operations import cancel
from nightmill.stages import publish, report
from nightmill.storage.batches import Batch
from support.crash_worker import hold, wait_for_the_provider, wound_down
from support.pipeline import Pipeline
from support.replays import BAD_INPUT, take_over, with_dead_letters
from support.rolled_back import rolled_back, two_versions
from support.steps import batch_of, half_done, one_shard, publish_unchecked, reconciled, run_unchecked, set_faults

QUIET = timedelta(seconds=60)  # more than create_timeout_s + quiet_period_s of the job
FAILS_ONCE = {"match": "-1?3$", "times": 1}  # two items, one in each file
BADLY_WRITTEN = {"match": "-6$", "times": 1, "kind": "prose"}


@dataclass(frozen=True, slots=True)
class Story:
    """`prepare` returns what the stage is told; `go_on` repeats the stage and takes the job to its end."""

    prepare: Callable[[Pipeline], Any]
    go_on: Callable[[Pipeline, Any], Any]


def to_the_end(pipeline: Pipeline, batch: Batch) -> None:
    pipeline.drive(pipeline.plan(batch))
    publish_unchecked(pipeline, batch)


def fresh(_: Pipeline) -> str:
    return "run-1"


def frozen_again(pipeline: Pipeline, run_id: str) -> None:
    to_the_end(pipeline, pipeline.freeze(run_id, first_try=False))


def half_answered_before(pipeline: Pipeline) -> int:
    """A batch whose first documents an earlier one had answered."""
    later = pipeline.sql("delete from documents where id > 'doc-08' returning *")
    run_unchecked(pipeline, "run-0")
    pipeline.documents(later)  # type: ignore[arg-type]
    return pipeline.freeze().batch_id


def planned_again(pipeline: Pipeline, batch_id: int) -> None:
    to_the_end(pipeline, batch_of(pipeline, batch_id))


def two_files_and_rounds_to_come(pipeline: Pipeline) -> int:
    pipeline.edit("job.yaml", "poll_interval_s: 1", "poll_interval_s: 1\n  limits: {requests_per_file: 12}")
    set_faults(pipeline.simulator, line_error=FAILS_ONCE, answer=BADLY_WRITTEN)
    return one_shard(pipeline)[1]


def driven_again(pipeline: Pipeline, shard: int) -> None:
    hold(pipeline, False)
    pipeline.clock_offset += QUIET
    pipeline.drive([shard])
    [(batch_id,)] = pipeline.sql("select batch_id from nightmill.shard where shard_id = %s", shard)
    publish_unchecked(pipeline, batch_of(pipeline, batch_id))


def driven(pipeline: Pipeline) -> int:
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    return batch.batch_id


def reconciled_again(pipeline: Pipeline, batch_id: int) -> None:
    publish_unchecked(pipeline, batch_of(pipeline, batch_id))


def passed(pipeline: Pipeline) -> int:
    batch_id = driven(pipeline)
    reconciled(pipeline, batch_of(pipeline, batch_id))
    return batch_id


def published_again(pipeline: Pipeline, batch_id: int) -> None:
    publish.run(pipeline.env, pipeline.live, batch_id, "tester")
    report.run(pipeline.env, batch_id)


def cancelled_again(pipeline: Pipeline, batch_id: int) -> None:
    """The next run pays for what is missing only."""
    cancel.run(pipeline.env, cancel.Target(batch_id), "not needed")
    wound_down(pipeline, None)
    set_faults(pipeline.simulator)
    wait_for_the_provider(pipeline)
    to_the_end(pipeline, pipeline.freeze("run-2"))


def half_done_and_cancelled(pipeline: Pipeline) -> int:
    batch_id, _ = half_done(pipeline)
    cancel.run(pipeline.env, cancel.Target(batch_id), "not needed")
    return batch_id


def mended_after_dead_letters(pipeline: Pipeline) -> int:
    parent = with_dead_letters(pipeline, BAD_INPUT)
    pipeline.edit("prompt.md", "Summarise this document.", "Describe this document in a few plain words.")
    return parent.batch_id


def replayed_again(pipeline: Pipeline, parent_id: int) -> None:
    to_the_end(pipeline, take_over(pipeline, parent_id, first_try=False))


def one_to_take_back(pipeline: Pipeline) -> str:
    two_versions(pipeline)
    return "nightmill_rollback run-1"


def rolled_back_again(pipeline: Pipeline, request: str) -> None:
    """Once, however often it is tried, with its answers revoked."""
    assert rolled_back(pipeline, request).revoked == 20
    assert pipeline.sql("select count(*) from nightmill.publication where kind = 'rollback'") == [(1,)]
    assert pipeline.sql("select distinct batch_id from results.notes") == [(1,)]
    assert pipeline.sql("select count(*), sum(revoked)::int from nightmill.hold") == [(1, 20)]


STORIES = {
    "freeze": Story(fresh, frozen_again),
    "plan": Story(half_answered_before, planned_again),
    "run_shard": Story(two_files_and_rounds_to_come, driven_again),
    "reconcile": Story(driven, reconciled_again),
    "publish": Story(passed, published_again),
    "cancel": Story(lambda pipeline: half_done(pipeline)[0], cancelled_again),
    "wind_down": Story(half_done_and_cancelled, cancelled_again),
    "replay": Story(mended_after_dead_letters, replayed_again),
    "rollback": Story(one_to_take_back, rolled_back_again),
}
