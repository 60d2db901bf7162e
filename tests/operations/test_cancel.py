"""Cancelling: one durable request; what was sent is stopped and collected for reuse, and never reaches a reader."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from support.forced import fault_log
from support.pipeline import Pipeline
from support.steps import (
    Worker,
    batch_of,
    cancel,
    counts,
    half_done,
    one_shard,
    paid_once,
    provider_batches,
    publish_unchecked,
    set_faults,
)

from dev.practice_provider.server import RunningSimulator
from nightmill.domain.errors import ConfigError, Terminal
from nightmill.domain.maintenance import Action
from nightmill.domain.states import BatchState
from nightmill.operations import cancel as stage
from nightmill.stages.run_shard import Finished, Waiting
from nightmill.storage import sending
from nightmill.upkeep import wind_down

CANCEL = "POST /v1/batches/{batch_id}/cancel"
QUIET = timedelta(seconds=60)  # more than create_timeout_s + quiet_period_s of the job


def wound_down(pipeline: Pipeline, *, seconds: float = 120) -> list[Action]:
    """Wind down until nothing is left at the provider."""
    done: list[Action] = []
    until = time.monotonic() + seconds
    while pipeline.sql("select 1 from nightmill.provider_batch where state not in ('COLLECTED', 'ABANDONED')"):
        assert time.monotonic() < until, provider_batches(pipeline)
        done += wind_down.run(pipeline.env, {pipeline.live.name: pipeline.live})
        time.sleep(0.05)
    return done


def test_a_cancel_is_one_request_that_raises_the_generation_and_can_be_repeated(pipeline: Pipeline) -> None:
    batch, shard = one_shard(pipeline)
    first = stage.run(pipeline.env, stage.Target(batch.batch_id), "not needed")
    assert (first.requested, first.in_flight, first.batch.state) == (True, 0, BatchState.CANCELLED)
    assert (first.batch.generation, first.batch.state_reason) == (2, "not needed")
    again = stage.run(pipeline.env, stage.Target(dag_id="nightmill_test", run_id="run-1"), "twice")
    assert (again.requested, again.batch.generation, again.batch.state_reason) == (False, 2, "not needed")
    assert isinstance(pipeline.wake(shard, restarted=True), Finished)
    assert pipeline.simulator.books(summary=True)["executed"] == 0


def test_what_cannot_be_cancelled_is_said(pipeline: Pipeline) -> None:
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    publish_unchecked(pipeline, batch)
    with pytest.raises(Terminal, match="has ended as PUBLISHED"):
        stage.run(pipeline.env, stage.Target(batch.batch_id), "late")
    with pytest.raises(ConfigError, match="has no batch"):
        stage.run(pipeline.env, stage.Target(dag_id="nightmill_test", run_id="run-2"), "unknown")
    with pytest.raises(ConfigError, match="Neither a batch nor a run"):
        stage.run(pipeline.env, stage.Target(dag_id="nightmill_test"), "unknown")


def test_what_a_cancelled_batch_had_sent_is_stopped_and_its_answers_are_kept_for_reuse(pipeline: Pipeline) -> None:
    batch_id, _ = half_done(pipeline)
    cancel(pipeline, batch_id)
    planned = wind_down.run(pipeline.env, {}, dry_run=True)
    assert [(one.batch_id, one.alert) for one in planned] == [(batch_id, False)]
    assert "is SUBMITTED" in planned[0].what and "would be stopped and collected" in planned[0].what
    assert [row[0] for row in provider_batches(pipeline)] == ["SUBMITTED"]  # a dry run does nothing
    done = wound_down(pipeline)
    assert "10 answers kept for reuse" in done[-1].what
    assert not any(one.alert for one in done)
    assert [row[0] for row in provider_batches(pipeline)] == ["COLLECTED"]
    assert pipeline.simulator.books()["batches"][0]["status"] == "cancelled"
    assert pipeline.sql("select count(*) from nightmill.result where effective") == [(10,)]
    assert pipeline.sql("select count(*) from nightmill.attempt where class is null") == [(10,)]
    assert pipeline.sql("select count(*) from nightmill.outcome") == [(0,)]
    assert pipeline.sql("select count(*) from nightmill.rows_notes") == [(0,)]
    assert pipeline.sql("select count(*) from nightmill.dead_letter") == [(0,)]
    assert batch_of(pipeline, batch_id).state is BatchState.CANCELLED
    with pipeline.env.ledger() as conn:
        assert (
            sending.enqueued_tokens(conn, *pipeline.sql("select account, model from nightmill.provider_batch")[0]) == 0
        )


def test_a_provider_that_asks_to_be_left_alone_is_not_called_for_the_rest_of_the_shard(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "poll_interval_s: 1", "poll_interval_s: 1\n  limits: {requests_per_file: 10}")
    set_faults(pipeline.simulator, hold=True)
    batch, shard = one_shard(pipeline)
    pipeline.wake(shard, restarted=True)
    cancel(pipeline, batch.batch_id)
    slow = {"route": CANCEL, "status": 429, "headers": {"retry-after": "300"}, "times": None}
    set_faults(pipeline.simulator, hold=True, call=slow)
    for _ in range(2):  # the second sweep makes no call at all
        done = wind_down.run(pipeline.env, {})
        assert "the provider asked to be left alone until" in done[-1].what
        assert not any(one.alert for one in done)
        assert len(fault_log(pipeline.simulator, "call")) == 1
    assert [row[0] for row in provider_batches(pipeline)] == ["SUBMITTED", "SUBMITTED"]
    set_faults(pipeline.simulator, hold=True)
    pipeline.clock_offset += timedelta(seconds=301)
    wound_down(pipeline)
    assert [row[0] for row in provider_batches(pipeline)] == ["COLLECTED", "COLLECTED"]


def test_a_run_after_a_cancel_waits_for_what_is_in_flight_and_executes_only_what_is_missing(pipeline: Pipeline) -> None:
    batch_id, _ = half_done(pipeline)
    cancel(pipeline, batch_id)
    set_faults(pipeline.simulator, hold=True, hold_after=10)
    again = pipeline.freeze("run-2")
    [shard] = pipeline.plan(again)
    waiting = pipeline.wake(shard, restarted=True)
    assert isinstance(waiting, Waiting)
    assert "20 items wait for the answer that another batch is getting" in waiting.line
    assert len(pipeline.simulator.books()["batches"]) == 1  # nothing more was sent
    wound_down(pipeline)
    set_faults(pipeline.simulator)
    pipeline.drive([shard])
    assert publish_unchecked(pipeline, again).counts == {"accepted": 10, "reused": 10}
    paid_once(pipeline, 20)


def test_the_wait_for_a_cancelled_batch_is_bounded(pipeline: Pipeline) -> None:
    batch_id, _ = half_done(pipeline)
    cancel(pipeline, batch_id)
    again = pipeline.freeze("run-2")
    [shard] = pipeline.plan(again)
    pipeline.wake(shard, restarted=True)
    pipeline.sql("update nightmill.batch set ended_at = now() - interval '3 hours' where batch_id = %s", batch_id)
    set_faults(pipeline.simulator)
    pipeline.drive([shard])
    assert counts(pipeline, again) == {"accepted": 20}


def test_tokens_of_a_cancelled_batch_count_until_it_is_stopped_and_not_for_ever(pipeline: Pipeline) -> None:
    batch_id, _ = half_done(pipeline)
    [(account, model, tokens)] = pipeline.sql("select account, model, prompt_tokens from nightmill.provider_batch")
    cancel(pipeline, batch_id)
    with pipeline.env.ledger() as conn:
        assert sending.enqueued_tokens(conn, account, model) == tokens
        conn.commit()
        pipeline.sql("update nightmill.provider_batch set window_ends_at = now() - interval '1 hour'")
        assert sending.enqueued_tokens(conn, account, model) == 0


def test_a_paused_workers_late_results_reach_neither_staging_nor_the_view(pipeline: Pipeline) -> None:
    """SIGSTOP between download and ingest; the batch is cancelled and wound down; then the worker goes on."""
    batch, shard = one_shard(pipeline)
    worker = Worker(pipeline, "wake", shard, "before_a_chunk")
    worker.pause_at_point()
    cancel(pipeline, batch.batch_id)
    wound_down(pipeline)
    said = worker.resume()
    assert "StaleWriter" in said
    [(what, held, rows, why)] = pipeline.sql("select what, held_generation, rows, why from nightmill.quarantine")
    assert (held, rows) == (1, 20)
    assert what.startswith("results of batch_")
    assert "is at generation 2" in why and "this writer holds generation 1" in why
    assert pipeline.sql("select count(*) from nightmill.outcome") == [(0,)]
    assert pipeline.sql("select count(*) from nightmill.rows_notes") == [(0,)]
    assert pipeline.sql("select count(*) from results.notes") == [(0,)]
    again = pipeline.freeze("run-2")
    pipeline.drive(pipeline.plan(again))  # all of it was paid already
    assert publish_unchecked(pipeline, again).counts == {"reused": 20}
    paid_once(pipeline, 20)


def test_a_worker_paused_before_its_create_call_pays_nothing_after_a_cancel(pipeline: Pipeline) -> None:
    """It checked the fence already: only the deleted input file stops it."""
    batch, shard = one_shard(pipeline)
    worker = Worker(pipeline, "wake", shard, "right_before_create")
    worker.pause_at_point()
    cancel(pipeline, batch.batch_id)
    wind_down.run(pipeline.env, {})
    assert [row[0] for row in provider_batches(pipeline)] == ["CREATING"]  # it may be under way: the quiet period
    pipeline.clock_offset += QUIET
    wound_down(pipeline)
    worker.resume()
    time.sleep(0.3)
    assert [row[0] for row in provider_batches(pipeline)] == ["ABANDONED"]
    assert pipeline.simulator.books(summary=True)["executed"] == 0


def test_a_create_whose_answer_was_lost_before_the_cancel_is_adopted_and_its_answers_kept(pipeline: Pipeline) -> None:
    batch, shard = one_shard(pipeline)
    Worker(pipeline, "wake", shard, "between_create_and_record").kill_at_point()
    cancel(pipeline, batch.batch_id)
    wound_down(pipeline)
    assert provider_batches(pipeline)[0][::2] == ("COLLECTED", True)
    kept = pipeline.sql("select count(*) from nightmill.result")[0][0]
    assert kept == pipeline.simulator.books(summary=True)["executed"]


def test_an_intent_that_was_never_sent_is_abandoned(pipeline: Pipeline) -> None:
    batch, shard = one_shard(pipeline)
    Worker(pipeline, "wake", shard, "between_intent_and_upload").kill_at_point()
    cancel(pipeline, batch.batch_id)
    wound_down(pipeline)
    assert provider_batches(pipeline) == [("ABANDONED", "cancelled before it was sent", None)]


def test_what_the_provider_never_ends_is_said_with_an_alert_then_followed_and_given_up_in_the_end(
    pipeline: Pipeline, start_simulator: Callable[..., RunningSimulator]
) -> None:
    pipeline.simulator = start_simulator(cancel_s=3600)
    batch_id, _ = half_done(pipeline)
    cancel(pipeline, batch_id)
    assert not any(one.alert for one in wind_down.run(pipeline.env, {}))
    assert provider_batches(pipeline)[0][0] == "SUBMITTED"
    pipeline.clock_offset += timedelta(hours=49)
    done = wind_down.run(pipeline.env, {})
    assert done[-1].alert
    assert "given up waiting, look at batch_" in done[-1].what
    assert provider_batches(pipeline)[0][0] == "SUBMITTED"
    pipeline.clock_offset += timedelta(days=1)
    assert not any(one.alert for one in wind_down.run(pipeline.env, {}))  # it was said
    pipeline.clock_offset += timedelta(days=29)
    done = wind_down.run(pipeline.env, {})
    assert done[-1].alert
    assert "given up, look at batch_" in done[-1].what
    assert provider_batches(pipeline)[0][0] == "ABANDONED"


def test_what_no_connection_reaches_any_more_is_said_and_given_up_in_the_end(pipeline: Pipeline) -> None:
    batch, shard = one_shard(pipeline)
    Worker(pipeline, "wake", shard, "right_before_create").kill_at_point()
    cancel(pipeline, batch.batch_id)
    pipeline.base_url = "http://127.0.0.1:1/v1"
    assert not any(one.alert for one in wind_down.run(pipeline.env, {}))  # it may come back
    pipeline.clock_offset += timedelta(hours=49)
    assert "given up" in wind_down.run(pipeline.env, {})[-1].what
    assert provider_batches(pipeline)[0][0] == "ABANDONED"


def test_a_winding_down_that_is_killed_in_mid_ingest_is_finished_by_the_next_one(pipeline: Pipeline) -> None:
    batch_id, _ = half_done(pipeline)
    cancel(pipeline, batch_id)
    Worker(pipeline, "wind_down", batch_id, "in_mid_ingest").kill_at_point()
    assert pipeline.sql("select count(*) from nightmill.attempt") == [(3,)]  # lines of both files, in item order
    wound_down(pipeline)
    assert pipeline.sql("select count(*) from nightmill.result") == [(10,)]
    assert pipeline.sql("select count(*) from nightmill.attempt where class is null") == [(10,)]
    paid_once(pipeline, 10)


def test_several_windings_down_at_a_time_count_everything_once(pipeline: Pipeline) -> None:
    batch_id, shard = half_done(pipeline)
    cancel(pipeline, batch_id)
    threads = [threading.Thread(target=wound_down, args=(pipeline,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [row[0] for row in provider_batches(pipeline)] == ["COLLECTED"]
    assert pipeline.sql("select count(*) from nightmill.result") == [(10,)]
    assert isinstance(pipeline.wake(shard, restarted=True), Finished)
