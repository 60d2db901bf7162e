"""The circuit breaker over a whole job: one mistake that all requests share does not cost all of them."""

from __future__ import annotations

from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import batch_of, counts, publish_unchecked, set_faults
from support.waiting import CREATE, SECONDS, all_accepted, calls, documents, reason

from nightmill.domain.errors import Blocked
from nightmill.domain.states import BatchState

UNSUPPORTED = {"status": 400, "code": "unsupported_parameter", "type": "invalid_request_error", "message": "No such."}
SMALL = "breaker: {requests: 10, pilot_items: 12, pilot_above_items: 40}\n"
EVERY: dict[str, dict[str, Any]] = {
    "every request fails": {"line_error": {**UNSUPPORTED, "times": None}},
    "every answer is invalid": {"answer": {"kind": "wrong_type", "times": None}},
    "every server error": {"line_error": {"times": None}},
}


def drive_until_blocked(pipeline: Pipeline, shards: list[int]) -> str:
    with pytest.raises(Blocked) as blocked:
        pipeline.drive(shards, SECONDS)
    for shard in shards:  # nobody else sends either
        for _ in range(3):
            pipeline.wake(shard)
    return str(blocked.value)


@pytest.mark.parametrize("faults", [pytest.param(value, id=name) for name, value in EVERY.items()])
def test_a_contract_without_an_accepted_answer_sends_a_few_first_and_they_cost_no_more(
    pipeline: Pipeline, faults: dict[str, Any]
) -> None:
    documents(pipeline, 60, files=1)
    pipeline.edit("job.yaml", "shards: {count: 2}\n", "shards: {count: 4}\n" + SMALL)
    set_faults(pipeline.simulator, **faults)
    batch = pipeline.freeze()
    told = drive_until_blocked(pipeline, pipeline.plan(batch))
    books = pipeline.simulator.books(summary=True)
    assert books["executed"] + books["failed"] <= 22  # the pilot, and where it may pass by itself a few once more
    assert "none was accepted" in told or "nothing of this batch was accepted" in told
    assert counts(pipeline, batch) == {"unsettled": 60}
    assert batch_of(pipeline, batch.batch_id).state is BatchState.BLOCKED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cost"), [("every request fails", 100), ("every answer is invalid", 100), ("every server error", 150)]
)
def test_20_000_items_of_a_contract_without_an_accepted_answer_that_all_fail_cost_150_requests_at_most(
    pipeline: Pipeline, name: str, cost: int
) -> None:
    documents(pipeline, 20_000)
    pipeline.edit("job.yaml", "shards: {count: 2}\n", "shards: {count: 16}\n")
    set_faults(pipeline.simulator, **EVERY[name])
    batch = pipeline.freeze()
    drive_until_blocked(pipeline, pipeline.plan(batch))
    books = pipeline.simulator.books(summary=True)
    assert books["executed"] + books["failed"] == cost
    assert counts(pipeline, batch) == {"unsettled": 20_000}


def proven(pipeline: Pipeline, items: int) -> None:
    """An earlier batch of the same contract was accepted; then as many other documents come."""
    documents(pipeline, 5, files=1)
    batch = pipeline.freeze("run-0")
    pipeline.drive(pipeline.plan(batch), SECONDS)
    publish_unchecked(pipeline, batch)
    pipeline.sql("delete from documents")
    pipeline.documents([(f"new-{n:05}", "1", f"tenant-{n % 3}", f"Text number {n}. Pages.") for n in range(items)])


@pytest.mark.parametrize("items", [40, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("faults", [pytest.param(EVERY[name], id=name) for name in list(EVERY)[:2]])
def test_with_earlier_accepted_answers_no_second_file_leaves_and_no_failed_line_is_sent_again(
    pipeline: Pipeline, items: int, faults: dict[str, Any]
) -> None:
    proven(pipeline, items)
    pipeline.edit("job.yaml", "limits: {requests_per_file: 5}", "limits: {requests_per_file: 50000}")
    pipeline.edit("job.yaml", "shards: {count: 2}\n", "shards: {count: 1}\n")
    before, made = pipeline.simulator.books(summary=True), calls(pipeline)[CREATE]
    set_faults(pipeline.simulator, **faults)
    batch = pipeline.freeze("run-1")
    drive_until_blocked(pipeline, pipeline.plan(batch))
    books = pipeline.simulator.books(summary=True)
    assert calls(pipeline)[CREATE] == made + 1
    assert books["executed"] + books["failed"] == before["executed"] + before["failed"] + items


@pytest.mark.parametrize("items", [20, pytest.param(2_000, marks=pytest.mark.slow)])
def test_19_of_20_lines_that_fail_with_one_code_open_the_breaker_and_clearing_sends_them_again(
    pipeline: Pipeline, items: int
) -> None:
    documents(pipeline, items, files=1)
    pipeline.edit("job.yaml", "shards: {count: 2}\n", "shards: {count: 1}\n")
    set_faults(pipeline.simulator, line_error={**UNSUPPORTED, "rate": 0.95, "seed": 3, "times": 1})
    batch = pipeline.freeze()
    shards = pipeline.plan(batch)
    told = drive_until_blocked(pipeline, shards)
    assert "failed with the same error (unsupported_parameter" in told
    assert "unsupported_parameter" in reason(pipeline, batch)
    pipeline.drive(shards, SECONDS)  # a person looked, and the provider has mended it
    assert counts(pipeline, batch) == {"accepted": items}


@pytest.mark.parametrize("items", [40, pytest.param(2_000, marks=pytest.mark.slow)])
def test_a_share_of_failures_that_is_no_single_mistake_opens_nothing(pipeline: Pipeline, items: int) -> None:
    documents(pipeline, items)
    batch = all_accepted(pipeline, items, line_error={"rate": 0.6, "seed": 1})
    assert pipeline.sql("select count(*) from nightmill.breaker where state = 'open'") == [(0,)]
    assert batch_of(pipeline, batch.batch_id).state is BatchState.RUNNING
