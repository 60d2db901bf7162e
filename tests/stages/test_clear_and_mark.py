"""What clearing or marking a task does, row by row of the design's table, at the level of the stages.

Clearing a task runs its stage again (run_shard with restarted=True, freeze with first_try=False); marking one as
success or failed leaves its stage out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import (
    batch_of,
    cancel,
    counts,
    paid_once,
    provider_batches,
    publish_unchecked,
    reconciled,
    run_unchecked,
    set_faults,
)

from nightmill.domain.errors import Blocked, SourceError, Terminal
from nightmill.domain.states import BatchState
from nightmill.gates import checks, compare, driver, registry
from nightmill.stages import plan, preflight, publish, reconcile, report
from nightmill.stages.run_shard import Finished, Waiting
from nightmill.storage import batches
from nightmill.storage.batches import Batch

SHOWN = "select distinct batch_id from results.notes"


@pytest.fixture
def waiting(pipeline: Pipeline) -> tuple[Batch, list[int]]:
    """A batch whose two shards wait for their provider batches, which the provider holds back."""
    set_faults(pipeline.simulator, hold=True)
    batch = pipeline.freeze()
    shards = pipeline.plan(batch)
    for shard in shards:
        assert isinstance(pipeline.wake(shard, restarted=True), Waiting)
    return batch, shards


def finish(pipeline: Pipeline, batch: Batch, shards: list[int]) -> None:
    set_faults(pipeline.simulator)
    pipeline.drive(shards)
    publish_unchecked(pipeline, batch)
    assert pipeline.sql("select count(*) from results.notes") == [(20,)]
    paid_once(pipeline, 20)


def test_clear_freeze_snapshot_returns_the_runs_existing_manifest_in_mid_run(
    pipeline: Pipeline, waiting: tuple[Batch, list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    again = pipeline.freeze(first_try=False)
    assert again.batch_id == waiting[0].batch_id
    assert "a new snapshot needs a new run or a backfill" in caplog.text
    finish(pipeline, *waiting)


def test_clear_plan_shards_keeps_the_plan_once_anything_was_submitted_and_clear_preflight_prices_again(
    pipeline: Pipeline, waiting: tuple[Batch, list[int]]
) -> None:
    batch, shards = waiting
    plan.run(pipeline.env, batch.batch_id)
    labels = preflight.run(pipeline.env, pipeline.live, batch.batch_id)
    assert [label.shard_id for label in labels] == shards
    finish(pipeline, batch, shards)


def test_clear_preflight_before_anything_was_sent_prices_by_what_is_configured_now(pipeline: Pipeline) -> None:
    batch = pipeline.freeze()
    shards = pipeline.plan(batch)
    pipeline.edit("job.yaml", "poll_interval_s: 1", "poll_interval_s: 1\n  expected_turnaround_s: 7")
    labels = preflight.run(pipeline.env, pipeline.live, batch.batch_id)
    assert [label.shard_id for label in labels] == shards
    estimate = batch_of(pipeline, batch.batch_id).estimate
    assert estimate is not None
    assert estimate["expected_seconds"] == 7


def test_clear_run_shard_re_attaches_and_works_only_on_that_shards_unsettled_items(
    pipeline: Pipeline, waiting: tuple[Batch, list[int]]
) -> None:
    batch, shards = waiting
    for _ in range(3):
        assert isinstance(pipeline.wake(shards[0], restarted=True), Waiting)
    assert len(provider_batches(pipeline)) == 2
    set_faults(pipeline.simulator)
    pipeline.drive([shards[0]])
    settled = counts(pipeline, batch)["accepted"]
    assert isinstance(pipeline.wake(shards[0], restarted=True), Finished)
    assert counts(pipeline, batch)["accepted"] == settled
    finish(pipeline, batch, shards)
    assert len(provider_batches(pipeline)) == 2


def test_clear_reconcile_check_staging_compare_and_approve_computes_and_asks_again(pipeline: Pipeline) -> None:
    batch = pipeline.freeze()
    pipeline.drive(pipeline.plan(batch))
    for _ in range(2):
        reconciled(pipeline, batch)
    rows = pipeline.sql("select gate, count(*) from nightmill.gate_verdict group by gate order by gate")
    assert rows == [("approve", 2), ("check_staging", 2), ("compare", 2), ("completion", 2)]
    publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
    assert pipeline.sql(SHOWN) == [(batch.batch_id,)]


def test_clear_publish_does_nothing_while_the_view_shows_the_batch_and_is_refused_after_a_newer_one(
    pipeline: Pipeline,
) -> None:
    first = run_unchecked(pipeline).batch
    publish.run(pipeline.env, pipeline.live, first.batch_id, "tester")
    assert pipeline.sql("select count(*) from nightmill.publication") == [(1,)]
    second = run_unchecked(pipeline, "run-2").batch
    with pytest.raises(Terminal, match="A newer batch was published: trigger a new run"):
        publish.run(pipeline.env, pipeline.live, first.batch_id, "tester")
    assert pipeline.sql(SHOWN) == [(second.batch_id,)]


def stages_after_freeze(pipeline: Pipeline, batch_id: int) -> dict[str, Callable[[], object]]:
    """Each task that can be cleared, by its name. run_shard is the sensor's matter: see test_sensor."""
    return {
        "plan_shards": lambda: plan.run(pipeline.env, batch_id),
        "preflight": lambda: preflight.run(pipeline.env, pipeline.live, batch_id),
        "reconcile": lambda: reconcile.run(pipeline.env, pipeline.live, batch_id),
        "check_staging": lambda: driver.run(pipeline.env, pipeline.live, batch_id, checks.GATE),
        "compare": lambda: driver.run(pipeline.env, pipeline.live, batch_id, compare.GATE),
        "approve": lambda: driver.run(pipeline.env, pipeline.live, batch_id, registry.approval(0)),
        "publish": lambda: publish.run(pipeline.env, pipeline.live, batch_id, "tester"),
        "report": lambda: report.run(pipeline.env, batch_id),
    }


def written(pipeline: Pipeline) -> tuple[Any, ...]:
    """What no cleared task of a batch at rest may add to."""
    rows = [pipeline.sql(f"select count(*) from nightmill.{name}") for name in ("transition", "gate_verdict", "batch")]
    return (*rows, pipeline.simulator.books())


@pytest.mark.parametrize("end", ["PUBLISHED", "STAGED", "ESTIMATED"])
def test_clear_anything_on_a_batch_that_has_data_or_is_a_dry_run_shows_the_recorded_result_and_is_green(
    pipeline: Pipeline, end: str
) -> None:
    batch = pipeline.freeze(dry_run=end == "ESTIMATED", publish="no" if end == "STAGED" else "auto")
    shards = pipeline.plan(batch)
    if end != "ESTIMATED":
        pipeline.drive(shards)
        publish_unchecked(pipeline, batch)
    before = written(pipeline)
    again = pipeline.freeze(first_try=False, max_tries=6)
    assert (again.batch_id, again.state) == (batch.batch_id, end)
    answers = {name: stage() for name, stage in stages_after_freeze(pipeline, batch.batch_id).items()}
    assert answers["preflight"] == []
    assert answers["check_staging"] is answers["compare"] is answers["approve"] is None
    assert (answers["publish"] is not None) == (end == "PUBLISHED")
    for shard in shards:
        finished = pipeline.wake(shard, restarted=True)
        assert isinstance(finished, Finished)
        assert end in finished.line
        assert finished.fault is None
    assert written(pipeline) == before


def end_without_data(pipeline: Pipeline, end: str) -> Batch:
    """A batch of which nothing was published: cancelled half-way, with gaps that the job does not allow, or refused for
    good by a gate (which no gate does yet)."""
    if end == "PARTIAL_FAILED":
        set_faults(pipeline.simulator, line_error=[{"match": "-4$", "status": 400, "code": "bad", "times": None}])
    batch = pipeline.freeze()
    first, second = pipeline.plan(batch)
    pipeline.drive([first])
    if end == "CANCELLED":
        cancel(pipeline, batch.batch_id)
        return batch
    pipeline.drive([second])
    if end == "PARTIAL_FAILED":
        with pytest.raises(Terminal, match="Clearing freeze_snapshot does the same in this run"):
            reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
        return batch
    reconciled(pipeline, batch)
    with pipeline.env.ledger() as conn:
        batches.move(conn, batches.get(conn, batch.batch_id), BatchState.REJECTED, "somebody said no")
    return batch


@pytest.mark.parametrize("end", ["CANCELLED", "PARTIAL_FAILED", "REJECTED"])
def test_clear_freeze_snapshot_of_a_batch_that_ended_without_data_opens_a_new_one_that_reuses_every_accepted_answer(
    pipeline: Pipeline, end: str
) -> None:
    ended = end_without_data(pipeline, end)
    set_faults(pipeline.simulator)
    before, executed = written(pipeline), pipeline.simulator.books(summary=True)["executed"]
    (answered,) = pipeline.sql("select count(*) from nightmill.result where effective")[0]

    for name, stage in stages_after_freeze(pipeline, ended.batch_id).items():
        with pytest.raises(Terminal, match=rf"is {end} .*nothing was published\..*clear freeze_snapshot") as red:
            stage()
        assert "reuses every accepted answer" in red.value.remedy, name
    with pytest.raises(Terminal, match=f"is {end}"):  # a retry, of a task whose batch somebody has ended meanwhile
        pipeline.freeze(first_try=False)
    assert written(pipeline) == before

    if end == "PARTIAL_FAILED":  # the gate was too strict
        pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0.95}\npublish:")
    again = pipeline.freeze(first_try=False, max_tries=6)
    assert (again.run_id, again.incarnation, again.max_tries) == (ended.run_id, 2, 6)
    pipeline.drive(pipeline.plan(again))
    made = publish_unchecked(pipeline, again)
    assert made.batch.state is BatchState.PUBLISHED
    assert made.counts["reused"] == answered
    assert pipeline.simulator.books(summary=True)["executed"] == executed + made.counts.get("accepted", 0)
    assert pipeline.sql("select distinct batch_id from results.notes") == [(again.batch_id,)]


def test_a_retry_after_a_cancel_stays_cancelled_also_where_the_task_was_cleared_before_the_cancel(
    pipeline: Pipeline,
) -> None:
    batch = pipeline.freeze()
    pipeline.freeze(first_try=False, max_tries=6)  # cleared while the batch lives
    assert batch_of(pipeline, batch.batch_id).max_tries == 6
    cancel(pipeline, batch.batch_id)
    with pytest.raises(Terminal, match="is CANCELLED"):
        pipeline.freeze(first_try=False, max_tries=6)
    again = pipeline.freeze(first_try=False, max_tries=8)  # cleared again
    assert again.incarnation == 2
    cancel(pipeline, again.batch_id)
    with pytest.raises(Terminal, match=f"Batch {again.batch_id} of run run-1 is CANCELLED"):
        pipeline.freeze(first_try=False, max_tries=8)


def test_a_cancel_before_anything_was_frozen_is_no_data_either_and_a_clear_begins_anew(pipeline: Pipeline) -> None:
    pipeline.sql("insert into documents values (null, '1', 'acme', 'Nameless.')")
    with pytest.raises(SourceError):
        pipeline.freeze()
    cancel(pipeline, 1)
    pipeline.sql("delete from documents where id is null")
    with pytest.raises(Terminal, match="is CANCELLED"):
        pipeline.freeze(first_try=False)
    assert pipeline.freeze(first_try=False, max_tries=7).state is BatchState.PLANNING


def test_mark_a_task_failed_stops_that_task_only_and_clearing_it_goes_on(
    pipeline: Pipeline, waiting: tuple[Batch, list[int]]
) -> None:
    """The failed task's shard is not woken any more; nothing is cancelled at the provider."""
    batch, shards = waiting
    set_faults(pipeline.simulator)
    pipeline.drive([shards[1]])
    assert {one["status"] for one in pipeline.simulator.books(summary=True)["batches"]} <= {
        "completed",
        "finalizing",
        "in_progress",
    }
    finish(pipeline, batch, [shards[0]])
    assert len(provider_batches(pipeline)) == 2


def test_mark_run_shard_success_leaves_its_items_unsettled_and_reconcile_names_it(
    pipeline: Pipeline, waiting: tuple[Batch, list[int]]
) -> None:
    batch, shards = waiting
    set_faults(pipeline.simulator)
    pipeline.drive([shards[1]])
    unsettled = counts(pipeline, batch)["unsettled"]
    with pytest.raises(Terminal, match=rf"{unsettled} items are not settled; open shards: {shards[0]}\."):
        reconcile.run(pipeline.env, pipeline.live, batch.batch_id)
    finish(pipeline, batch, [shards[0]])


def test_mark_a_gate_success_opens_nothing(pipeline: Pipeline) -> None:
    """Of compare and approve: tests/gates."""
    batch = pipeline.freeze()
    pipeline.drive(pipeline.plan(batch))
    reconciled(pipeline, batch)
    pipeline.sql("delete from nightmill.gate_verdict where gate = 'check_staging'")
    with pytest.raises(Blocked, match=r"no recorded pass of check_staging in generation 1.*marking it as success"):
        publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
    assert pipeline.sql(SHOWN) == []
    assert batch_of(pipeline, batch.batch_id).state is BatchState.VALIDATING


def test_mark_publish_success_publishes_nothing_and_report_fails_and_says_so(pipeline: Pipeline) -> None:
    batch = pipeline.freeze()
    pipeline.drive(pipeline.plan(batch))
    reconciled(pipeline, batch)
    with pytest.raises(Terminal, match=r"is VALIDATING: nothing was published\. Remedy: Clear publish"):
        report.run(pipeline.env, batch.batch_id)
    assert pipeline.sql(SHOWN) == []


def test_a_pass_of_an_older_generation_opens_nothing(pipeline: Pipeline) -> None:
    batch = pipeline.freeze()
    pipeline.drive(pipeline.plan(batch))
    reconciled(pipeline, batch)
    pipeline.sql("update nightmill.batch set generation = generation + 1")
    with pytest.raises(Blocked, match="no recorded pass of completion, check_staging in generation 2"):
        publish.run(pipeline.env, pipeline.live, batch.batch_id, "tester")
