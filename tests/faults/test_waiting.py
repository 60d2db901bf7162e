"""Limits, full queues, absence and late results over a whole job: nothing is lost, nothing bought twice, and after a
refusal one create goes out at a time."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from support.forced import executions, fault_log
from support.pipeline import Pipeline
from support.steps import batch_of, cancel, counts, publish_unchecked, set_faults
from support.waiting import (
    CREATE,
    SECONDS,
    UPLOAD,
    account_limit,
    all_accepted,
    calls,
    cancel_in_the_console,
    documents,
    executed,
    later,
    nothing_lost_and_paid_as_forced,
    reason,
    until_executed,
    wake_all,
)

from nightmill.domain.errors import Blocked
from nightmill.domain.states import BatchState
from nightmill.operations import answered_create
from nightmill.stages.run_shard import Waiting
from nightmill.upkeep import orphans, stuck, wind_down

SIZES = [40, pytest.param(2_000, marks=pytest.mark.slow)]
LIST, POLL = "GET /v1/batches", "GET /v1/batches/{batch_id}"
sizes = pytest.mark.parametrize("items", SIZES)

QUEUE_FULL = {
    "400 token_limit_exceeded": {"status": 400, "code": "token_limit_exceeded", "message": "No."},
    "429 token_limit_exceeded": {"status": 429, "code": "token_limit_exceeded", "message": "No."},
    "429 in prose": {"status": 429, "message": "Enqueued token limit reached for echo-1. Please try again later."},
    "403 too many batches": {"status": 403, "message": "Too many concurrent batches: the maximum is 3."},
}
TOO_LARGE: dict[str, dict[str, Any]] = {
    "upload 413": {"call": {"route": UPLOAD, "status": 413, "message": "Request entity too large"}},
    "upload 413 of a gateway": {"call": {"route": UPLOAD, "status": 413, "html": True}},
    "upload 400": {"call": {"route": UPLOAD, "status": 400, "message": "File exceeds the maximum size of 100 MB."}},
    "create 413": {"call": {"route": CREATE, "status": 413, "message": "too large"}},
    "create 400": {"call": {"route": CREATE, "status": 400, "code": "too_many_requests_in_batch"}},
    "validation": {"refuse_file": {"code": "too_many_tasks", "message": "The file has more than 10 requests."}},
}


@sizes
@pytest.mark.parametrize("refusal", [pytest.param(value, id=name) for name, value in QUEUE_FULL.items()])
def test_a_full_queue_means_the_same_as_the_answer_to_a_create_and_no_file_is_sent_in_a_loop(
    pipeline: Pipeline, items: int, refusal: dict[str, Any]
) -> None:
    documents(pipeline, items)
    all_accepted(pipeline, items, call={"route": CREATE, "times": 3, **refusal})
    [(taken,)] = pipeline.sql("select count(*) from nightmill.provider_batch where state = 'COLLECTED'")
    assert calls(pipeline)[CREATE] == taken + 3
    assert calls(pipeline)[UPLOAD] <= taken + 3


@sizes
@pytest.mark.parametrize("fault", [pytest.param(value, id=name) for name, value in TOO_LARGE.items()])
def test_a_file_that_is_too_large_makes_smaller_ones_however_the_provider_says_it(
    pipeline: Pipeline, items: int, fault: dict[str, Any]
) -> None:
    documents(pipeline, items, files=2)
    all_accepted(pipeline, items, **fault)
    sent = pipeline.sql("select refused, requests from nightmill.provider_batch order by provider_batch_id")
    refused = [requests for why, requests in sent if why == "size"]
    assert len(refused) == 1
    assert all(requests <= refused[0] // 2 + 1 for why, requests in sent[sent.index(("size", refused[0])) + 2 :])


@sizes
@pytest.mark.parametrize("arrives", ["as the answer to a create", "in validation"])
def test_a_queue_that_stays_full_is_probed_by_one_create_at_a_time_and_a_person_hears_of_it(
    pipeline: Pipeline, items: int, arrives: str, caplog: pytest.LogCaptureFixture
) -> None:
    documents(pipeline, items)
    pipeline.edit(
        "job.yaml", "poll_interval_s: 1\n", "poll_interval_s: 60\n"
    )  # pauses that a slow machine cannot sit out
    full: dict[str, Any] = {"code": "token_limit_exceeded", "times": None}
    if arrives == "in validation":
        set_faults(pipeline.simulator, refuse_file=full)
    else:
        set_faults(pipeline.simulator, call={"route": CREATE, "status": 429, **full})
    batch = pipeline.freeze()
    shards = pipeline.plan(batch)
    first_wave = _refused_once(pipeline, shards)
    since = account_limit(pipeline)[2]
    pauses = []
    for _ in range(6):  # probe after probe
        refusals, pause_s, due = account_limit(pipeline)
        made = calls(pipeline)[CREATE]
        wake_all(pipeline, shards)
        assert calls(pipeline)[CREATE] == made, "nothing goes out in the pause"
        pipeline.turn_clock_to(due)
        _until_refused(pipeline, shards, refusals + 1)
        assert calls(pipeline)[CREATE] == made + 1
        pauses.append(pause_s)
    assert pauses == sorted(pauses)
    assert pauses[0] <= 240
    assert pauses[-1] == 900
    assert first_wave <= 4
    assert "ALERT: the provider has taken no file for echo-1" in caplog.text
    assert (account_limit(pipeline)[2] - since).total_seconds() < 7200
    assert any("its queue is full" in action.what for action in stuck.run(pipeline.env) if action.alert)
    set_faults(pipeline.simulator)
    pipeline.drive(shards, SECONDS)
    nothing_lost_and_paid_as_forced(pipeline, batch, items)


def _refused_once(pipeline: Pipeline, shards: list[int]) -> int:
    """Wake until every file that went out before the first refusal was seen has come back; how many those were."""
    wake_all(pipeline, shards)
    _until_refused(pipeline, shards, 1)
    for _ in range(100):
        wake_all(pipeline, shards)
        [(alive,)] = pipeline.sql("select count(*) from nightmill.provider_batch where state <> 'ABANDONED'")
        if not alive:
            return calls(pipeline)[CREATE]
    raise AssertionError("files are under way")


def _until_refused(pipeline: Pipeline, shards: list[int], times: int) -> None:
    for _ in range(100):
        wake_all(pipeline, shards)
        if account_limit(pipeline)[0] >= times:
            return
    raise AssertionError(f"not refused {times} times")


@sizes
@pytest.mark.parametrize("kind", ["growing", "empty", "error"])
def test_an_output_file_that_is_not_whole_after_completed_is_waited_for(
    pipeline: Pipeline, items: int, kind: str
) -> None:
    documents(pipeline, items, keys="\n  results_grace_s: 900")
    all_accepted(pipeline, items, short_content={"kind": kind, "times": 4})
    assert len(fault_log(pipeline.simulator, "short_content")) >= 4
    assert pipeline.sql("select count(*) from nightmill.attempt") == [(items,)]


@sizes
@pytest.mark.parametrize("off", [7, -3])
def test_a_total_that_is_not_what_was_sent_is_logged_with_both_numbers(
    pipeline: Pipeline, items: int, off: int
) -> None:
    documents(pipeline, items, files=2, keys="\n  results_grace_s: 900")
    all_accepted(pipeline, items, total_off=off)
    for sent, told in pipeline.sql("select requests, state_reason from nightmill.provider_batch"):
        assert f"{sent:,} requests sent, {sent:,} answered" in told
        assert f"the provider counts {sent:,} of {sent + off:,} finished" in told


@sizes
def test_a_batch_that_somebody_cancels_at_the_provider_blocks_and_asks_even_before_its_counts_and_files_arrive(
    pipeline: Pipeline, items: int
) -> None:
    documents(pipeline, items, files=1, keys="\n  results_grace_s: 900")
    set_faults(pipeline.simulator, hold=True, hold_after=items // 8)
    batch = pipeline.freeze()
    shards = pipeline.plan(batch)
    wake_all(pipeline, shards)
    until_executed(pipeline, 2 * (items // 8))
    [(provider_id,)] = pipeline.sql("select provider_id from nightmill.provider_batch where shard_id = %s", shards[0])
    cancel_in_the_console(pipeline, provider_id)
    set_faults(pipeline.simulator, hide_files=3, hide_counts=3)
    with pytest.raises(Blocked, match=r"Somebody cancelled provider batch .* Remedy: Ask who stopped it"):
        pipeline.drive([shards[0]], SECONDS)
    made = calls(pipeline)[CREATE]
    assert batch_of(pipeline, batch.batch_id).state is BatchState.BLOCKED
    pipeline.wake(shards[0])
    assert (calls(pipeline)[CREATE], counts(pipeline, batch)["accepted"] >= items // 8) == (made, True)
    pipeline.drive(shards, SECONDS)  # cleared
    nothing_lost_and_paid_as_forced(pipeline, batch, items)


ABSENCE: dict[str, dict[str, Any]] = {
    "oldest first, 150 older ones": {"listing": {"order": "oldest first", "before": 150}},
    "an hour behind, 150 newer ones": {"listing": {"after": 150}, "clock_behind_s": 3600},
    "an hour ahead, 150 older ones": {"listing": {"before": 150}, "clock_behind_s": -3600},
}


@sizes
@pytest.mark.parametrize("odd", [pytest.param(value, id=name) for name, value in ABSENCE.items()])
def test_a_lost_create_is_found_whatever_the_order_and_the_clock_of_the_listing(
    pipeline: Pipeline, items: int, odd: dict[str, Any]
) -> None:
    documents(pipeline, items)
    all_accepted(pipeline, items, drop_create_reply=1, **odd)
    assert fault_log(pipeline.simulator, "listing")
    assert pipeline.sql("select count(*) from nightmill.provider_batch where adopted") == [(1,)]


UNPROVABLE: dict[str, tuple[dict[str, Any], str, float]] = {
    "repeats entries": ({"listing": {"after": 150, "repeating": True}}, "repeats entries", 1.1),
    "no listing": ({"call": {"route": LIST, "status": 405, "times": None}}, "no listing of batches", 0.01),
}


@sizes
@pytest.mark.parametrize("case", [pytest.param(value, id=name) for name, value in UNPROVABLE.items()])
def test_where_absence_cannot_be_proved_the_wait_says_why_and_a_person_is_asked(
    pipeline: Pipeline, items: int, case: tuple[dict[str, Any], str, float]
) -> None:
    odd, why, hours = case
    documents(pipeline, items)
    set_faults(pipeline.simulator, drop_create_reply=1, **odd)
    batch = pipeline.freeze()
    shards = pipeline.plan(batch)
    lines = [pipeline.wake(shards[0], restarted=True).line, pipeline.wake(shards[0]).line]
    assert any("not seen at the provider so far, and that proves nothing: " in line for line in lines)
    assert any(why in line for line in lines)
    later(pipeline, hours=hours)
    with pytest.raises(Blocked, match=rf"cannot be told: .*{why}.*lost-create --provider-batch 1 --taken-as ID"):
        pipeline.wake(shards[0])
    [taken] = [one["batch"] for one in fault_log(pipeline.simulator, "drop_create_reply")]
    assert answered_create.run(pipeline.env, 1, taken).provider_id == taken
    pipeline.drive(shards, SECONDS)
    nothing_lost_and_paid_as_forced(pipeline, batch, items)


@sizes
def test_a_lost_create_that_was_given_up_is_read_and_booked_once_it_has_ended(
    pipeline: Pipeline, items: int, caplog: pytest.LogCaptureFixture
) -> None:
    documents(pipeline, items)
    set_faults(pipeline.simulator, drop_create_reply=1, listing={"hidden": True})
    batch = pipeline.freeze()
    shards = pipeline.plan(batch)
    wake_all(pipeline, shards[:1])
    later(pipeline, minutes=1)
    pipeline.drive(shards, SECONDS)
    assert counts(pipeline, batch) == {"accepted": items}
    twice = items // 4  # the fault forced it: the provider hid what it had taken
    assert executions(pipeline.simulator).total() == items + twice
    set_faults(pipeline.simulator)
    told = [action.what for action in orphans.run(pipeline.env, {"notes": pipeline.live}) if action.batch_id]
    assert any(f"{twice:,} answers that nobody waits for, booked with" in text for text in told)
    assert orphans.run(pipeline.env, {"notes": pipeline.live}) == []  # once
    usage = pipeline.simulator.books(summary=True)["usage"]
    assert pipeline.sql(
        """select (select sum(prompt_tokens) from nightmill.attempt)
            + (select sum(prompt_tokens) from nightmill.stray_batch)"""
    ) == [(usage["prompt_tokens"],)]
    with caplog.at_level(logging.INFO):
        publish_unchecked(pipeline, batch)
    assert f"found later: 1 provider batch that had been given up, {twice:,} answers" in caplog.text


def test_a_cancelled_run_that_is_cancelling_for_days_is_read_and_booked_once_it_has_ended(pipeline: Pipeline) -> None:
    documents(pipeline, 40)
    set_faults(pipeline.simulator, hold=True, hold_after=5)
    batch = pipeline.freeze()
    shards = pipeline.plan(batch)
    wake_all(pipeline, shards)
    until_executed(pipeline, 20)
    set_faults(pipeline.simulator, hold=True, hold_after=5, stuck="cancelling")
    cancel(pipeline, batch.batch_id)
    jobs = {"notes": pipeline.live}
    wind_down.run(pipeline.env, jobs)
    later(pipeline, hours=49)
    told = wind_down.run(pipeline.env, jobs)
    assert any("it is read once it has ended" in action.what for action in told if action.alert)
    set_faults(pipeline.simulator)
    for _ in range(100):
        wind_down.run(pipeline.env, jobs)
        if pipeline.sql("select count(*) from nightmill.provider_batch where state <> 'COLLECTED'") == [(0,)]:
            break
    usage = pipeline.simulator.books(summary=True)["usage"]
    assert pipeline.sql("select sum(prompt_tokens) from nightmill.attempt") == [(usage["prompt_tokens"],)]
    assert executed(pipeline) == 20


@sizes
def test_a_status_that_nobody_knows_is_polled_then_a_person_is_asked_and_it_goes_on_by_itself(
    pipeline: Pipeline, items: int, caplog: pytest.LogCaptureFixture
) -> None:
    documents(pipeline, items, files=2)
    set_faults(pipeline.simulator, hold=True, status_shown="paused_by_wizard")
    batch = pipeline.freeze()
    first, second = pipeline.plan(batch)
    pipeline.wake(first, restarted=True)
    assert "nothing more is sent" in pipeline.wake(first).line
    assert isinstance(waited := pipeline.wake(second, restarted=True), Waiting)
    assert "nothing is sent while the provider shows the status 'paused_by_wizard'" in waited.line
    later(pipeline, hours=5.9)
    pipeline.wake(first)
    assert batch_of(pipeline, batch.batch_id).state is BatchState.RUNNING
    later(pipeline, hours=0.2)
    pipeline.wake(first)
    assert batch_of(pipeline, batch.batch_id).state is BatchState.BLOCKED
    assert "the status 'paused_by_wizard' for batch" in reason(pipeline, batch)
    assert "ALERT" in caplog.text
    assert calls(pipeline)[CREATE] == 1
    set_faults(pipeline.simulator)
    pipeline.drive([first], SECONDS, restarted=False)
    assert batch_of(pipeline, batch.batch_id).state is BatchState.RUNNING
    pipeline.drive([second], SECONDS, restarted=False)
    nothing_lost_and_paid_as_forced(pipeline, batch, items)
