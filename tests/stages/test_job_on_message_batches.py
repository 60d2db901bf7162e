"""A whole job at the second vendor, from the source table to its view."""

from __future__ import annotations

import json

import pytest
from support.pipeline import Pipeline
from support.steps import paid_once, run_unchecked, set_faults
from support.vendors import ANTHROPIC, speak
from support.waiting import calls

from nightmill.operations import cancel
from nightmill.stages.run_shard import Waiting
from nightmill.upkeep import wind_down


@pytest.fixture
def job(pipeline: Pipeline) -> Pipeline:
    speak(pipeline, ANTHROPIC)
    return pipeline


def test_a_job_runs_to_its_view_and_a_second_run_asks_for_nothing(job: Pipeline) -> None:
    first = run_unchecked(job)
    assert first.counts == {"accepted": 20}
    assert first.is_shown
    assert job.sql("select count(*), count(distinct source_id) from results.notes") == [(20, 20)]
    [(tokens, output)] = job.sql("select sum(prompt_tokens)::int, sum(output_tokens)::int from nightmill.attempt")
    usage = job.simulator.books(summary=True)["usage"]
    assert (tokens, output) == (usage["prompt_tokens"], usage["completion_tokens"])
    [(adapter, until, ends)] = job.sql(
        "select distinct adapter, results_until is not null, window_ends_at is not null from nightmill.provider_batch"
    )
    assert (adapter, until, ends) == ("anthropic", True, True)
    second = run_unchecked(job, "run-2")
    assert second.counts == {"reused": 20}
    paid_once(job, 20)
    assert set(calls(job)) >= {ANTHROPIC.create, ANTHROPIC.poll, ANTHROPIC.content}
    assert not [route for route in calls(job) if "files" in route]


def test_a_cancelled_job_stops_its_batch_and_keeps_what_was_answered(job: Pipeline) -> None:
    set_faults(job.simulator, hold=True, hold_after=4)
    job.edit("job.yaml", "shards: {count: 2}", "shards: {count: 1}")
    batch = job.freeze()
    [shard] = job.plan(batch)
    assert isinstance(job.wake(shard), Waiting)
    cancel.run(job.env, cancel.Target(batch.batch_id), "not needed")
    for _ in range(40):
        wind_down.run(job.env, {})
        if job.sql("select distinct state from nightmill.provider_batch") == [("COLLECTED",)]:
            break
    assert job.sql("select distinct state, stopped from nightmill.provider_batch") == [("COLLECTED", "cancelled")]
    set_faults(job.simulator)
    assert json.dumps(job.simulator.books(summary=True)["duplicates"]) == "[]"
