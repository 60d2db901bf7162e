"""Provider batches and calls as they go wrong in the field, over a whole shard."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from support.forced import fault_log
from support.pipeline import Pipeline
from support.shard_under_faults import CONTENT, ITEMS, POLL, all_accepted, codes
from support.steps import (
    batch_of,
    counts,
    one_shard,
    paid_once,
    provider_batches,
    set_faults,
    wake_until,
)

from dev.practice_provider.server import RunningSimulator
from nightmill.domain.errors import Blocked
from nightmill.domain.states import BatchState
from nightmill.stages.run_shard import Waiting

StartSimulator = Callable[..., RunningSimulator]


def listed(simulator: RunningSimulator, what: str) -> list[dict[str, Any]]:
    """The provider's own listing of files or batches."""
    with urllib.request.urlopen(f"{simulator.base_url}/{what}", timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]
    return found


def test_c10_c52_custom_ids_are_short_plain_and_never_used_twice(pipeline: Pipeline) -> None:
    all_accepted(pipeline, answer={"kind": "lost", "match": "-[1-4]$"})
    requests = pipeline.simulator.books()["requests"]
    assert len(requests) == ITEMS + 4
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", custom_id) for custom_id in requests)
    assert {len(entry["executions"]) for entry in requests.values()} == {1}


@pytest.mark.parametrize("fault", [{"stuck": "validating"}, {"stuck": "finalizing"}, {"hold": True}])
def test_c16_c17_a_batch_that_is_stuck_asks_a_person_after_two_days_and_is_collected_when_it_moves(
    pipeline: Pipeline, fault: dict[str, Any]
) -> None:
    set_faults(pipeline.simulator, **fault)
    batch, shard = one_shard(pipeline)
    assert isinstance(pipeline.wake(shard), Waiting)
    pipeline.clock_offset += timedelta(hours=49)
    with pytest.raises(Blocked, match="has not ended"):
        pipeline.wake(shard)
    assert batch_of(pipeline, batch.batch_id).state is BatchState.BLOCKED
    set_faults(pipeline.simulator)
    pipeline.clock_offset -= timedelta(hours=49)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": ITEMS}
    paid_once(pipeline, ITEMS)


def test_c19_a_line_that_fails_validation_later_is_cut_out_and_named_by_its_item(pipeline: Pipeline) -> None:
    blamed = {"match": "Text number 3\\.", "named": True, "code": "invalid_value", "message": "Bad.", "times": None}
    set_faults(pipeline.simulator, refuse_file=blamed)
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": ITEMS - 1, "dead_lettered": 1}
    assert pipeline.sql("select ordinal, class, code, message from nightmill.dead_letter") == [
        (2, "input", "invalid_value", "Bad.")
    ]
    paid_once(pipeline, ITEMS - 1)


def test_c20_a_full_queue_is_waited_for_and_fails_no_item(pipeline: Pipeline) -> None:
    all_accepted(pipeline, refuse_file={"code": "token_limit_exceeded", "times": 3})
    assert codes(pipeline) == {}
    assert len(fault_log(pipeline.simulator, "refuse_file")) == 3


@pytest.mark.parametrize("after", [0, 1])
def test_c23_a_batch_that_is_not_found_for_a_while_is_not_lost(pipeline: Pipeline, after: int) -> None:
    all_accepted(pipeline, call={"route": POLL, "status": 404, "after": after, "times": 3})
    assert len(provider_batches(pipeline)) == 1


def test_c25_an_input_file_that_is_not_found_right_after_its_upload_is_sent_again(pipeline: Pipeline) -> None:
    unseen = {"route": "POST /v1/batches", "status": 404, "message": "Input file not found", "times": 2}
    all_accepted(pipeline, call=unseen)
    [*abandoned, (state, _, _)] = provider_batches(pipeline)
    assert ({one for one, _, _ in abandoned}, state) == ({"ABANDONED"}, "COLLECTED")


def test_c28_lost_contact_is_neither_an_end_nor_a_failure(pipeline: Pipeline) -> None:
    all_accepted(pipeline, call={"route": POLL, "status": 503, "times": 10})
    assert len(pipeline.simulator.books(summary=True)["batches"]) == 1


@pytest.mark.parametrize("fault", ["drop_create_reply", "fail_create_after_accept"])
def test_c35_c37_a_create_whose_reply_is_lost_is_adopted_and_paid_once(pipeline: Pipeline, fault: str) -> None:
    pipeline.edit("job.yaml", "quiet_period_s: 0", "quiet_period_s: 600")
    all_accepted(pipeline, **{fault: 1})
    assert [adopted for _, _, adopted in provider_batches(pipeline)] == [True]


@pytest.mark.parametrize("headers", [{"retry-after": "300"}, {"retry-after-ms": "300000"}])
def test_c38_a_long_retry_after_is_honoured(pipeline: Pipeline, headers: dict[str, str]) -> None:
    set_faults(pipeline.simulator, hold=True)
    _, shard = one_shard(pipeline)
    pipeline.wake(shard, restarted=True)
    set_faults(pipeline.simulator, hold=True, call={"route": POLL, "status": 429, "headers": headers, "times": None})
    waiting = pipeline.wake(shard)
    assert isinstance(waiting, Waiting)
    assert 290 < (waiting.until - pipeline.env.now()).total_seconds() <= 301


def test_c38_a_retry_after_right_after_the_create_is_honoured_and_nothing_more_is_sent(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "poll_interval_s: 1", "poll_interval_s: 1\n  limits: {requests_per_file: 10}")
    slow = {"route": POLL, "status": 429, "headers": {"retry-after": "300"}, "times": None}
    set_faults(pipeline.simulator, call=slow)
    _, shard = one_shard(pipeline)
    for restarted in (True, False):  # the second one makes no call at all
        waiting = pipeline.wake(shard, restarted=restarted)
        assert isinstance(waiting, Waiting)
        assert 290 < (waiting.until - pipeline.env.now()).total_seconds() <= 301
        assert [state for state, _, _ in provider_batches(pipeline)] == ["SUBMITTED"]
        assert len(fault_log(pipeline.simulator, "call")) == 1
    set_faults(pipeline.simulator)
    pipeline.clock_offset += timedelta(seconds=301)
    pipeline.drive([shard])
    paid_once(pipeline, ITEMS)


def test_c38_a_retry_after_for_one_batch_holds_for_all_batches_of_its_shard(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "poll_interval_s: 1", "poll_interval_s: 1\n  limits: {requests_per_file: 10}")
    set_faults(pipeline.simulator, hold=True)
    _, shard = one_shard(pipeline)
    pipeline.wake(shard, restarted=True)
    assert [state for state, _, _ in provider_batches(pipeline)] == ["SUBMITTED", "SUBMITTED"]
    slow = {"route": POLL, "status": 429, "headers": {"retry-after": "300"}, "times": None}
    set_faults(pipeline.simulator, hold=True, call=slow)
    pipeline.wake(shard)
    assert len(fault_log(pipeline.simulator, "call")) == 1


def test_c46_an_empty_account_stops_spending_and_costs_no_item_an_attempt(pipeline: Pipeline) -> None:
    broke = {"match": "-[1-4]$", "status": 400, "code": "", "message": "Your credit balance is too low.", "times": None}
    set_faults(pipeline.simulator, line_error=broke)
    batch, shard = one_shard(pipeline)
    with pytest.raises(Blocked, match=r"4 lines of provider batch .* no budget left"):
        for _ in range(100):
            pipeline.wake(shard, restarted=True)
    assert counts(pipeline, batch) == {"accepted": ITEMS - 4, "unsettled": 4}
    set_faults(pipeline.simulator)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": ITEMS}
    paid_once(pipeline, ITEMS)


def test_c50_a_retired_model_blocks_the_batch_before_any_item_fails(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "model: echo-1", "model: retired-1")
    batch, shard = one_shard(pipeline)
    with pytest.raises(Blocked, match="model_not_found"):
        for _ in range(100):
            pipeline.wake(shard)
    assert counts(pipeline, batch) == {"unsettled": ITEMS}
    paid_once(pipeline, 0)


def test_c55_an_overloaded_provider_is_waited_for_and_an_unclear_create_looked_up(pipeline: Pipeline) -> None:
    overloaded = {"status": 529, "type": "overloaded_error", "message": "Overloaded"}
    calls = [{"route": route, **overloaded} for route in ("POST /v1/files", "POST /v1/batches", POLL, CONTENT)]
    all_accepted(pipeline, call=calls)
    assert len(fault_log(pipeline.simulator, "call")) == 4


def test_c68_the_jobs_limits_bound_every_file(pipeline: Pipeline) -> None:
    limits = "poll_interval_s: 1\n  limits: {requests_per_file: 7, bytes_per_file: 3000}"
    pipeline.edit("job.yaml", "poll_interval_s: 1", limits)
    all_accepted(pipeline)
    assert max(one["total"] for one in pipeline.simulator.books(summary=True)["batches"]) <= 7
    assert pipeline.sql("select max(file_bytes) <= 3000 from nightmill.provider_batch") == [(True,)]


def test_c94_a_worker_that_wakes_hours_after_the_end_collects_what_is_there(pipeline: Pipeline) -> None:
    batch, shard = one_shard(pipeline)
    pipeline.wake(shard, restarted=True)
    pipeline.clock_offset += timedelta(hours=30)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": ITEMS}
    paid_once(pipeline, ITEMS)


def test_c104_the_metadata_is_one_short_token(pipeline: Pipeline) -> None:
    all_accepted(pipeline)
    [batch] = listed(pipeline.simulator, "batches")
    [(name, token)] = batch["metadata"].items()
    assert re.fullmatch(r"\w{1,64}", name)
    assert re.fullmatch(r"[0-9a-f]{16}", token)


def test_c106_input_files_do_not_stay_at_the_provider(pipeline: Pipeline) -> None:
    all_accepted(pipeline, answer={"kind": "lost", "match": "-[1-4]$"})
    assert {file["purpose"] for file in listed(pipeline.simulator, "files")} == {"batch_output"}


@pytest.mark.parametrize("route", ["POST /v1/files", "POST /v1/batches", POLL, CONTENT])
def test_c107_a_page_instead_of_an_answer_is_a_transport_error(pipeline: Pipeline, route: str) -> None:
    all_accepted(pipeline, call={"route": route, "status": 200, "html": True, "times": 2})


def test_a_status_that_nobody_knows_stops_spending_and_keeps_its_word(pipeline: Pipeline) -> None:
    set_faults(pipeline.simulator, hold=True, status_shown="paused_by_wizard")
    batch, shard = one_shard(pipeline)
    assert "nothing more is sent" in pipeline.wake(shard).line
    pipeline.clock_offset += timedelta(hours=6, seconds=1)
    pipeline.wake(shard)
    assert pipeline.sql("select raw_status from nightmill.provider_batch") == [("paused_by_wizard",)]
    assert batch_of(pipeline, batch.batch_id).state is BatchState.BLOCKED
    set_faults(pipeline.simulator)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": ITEMS}
    paid_once(pipeline, ITEMS)


def test_of_a_batch_that_somebody_cancelled_at_the_provider_the_finished_part_is_kept(pipeline: Pipeline) -> None:
    set_faults(pipeline.simulator, hold=True, hold_after=8)
    batch, shard = one_shard(pipeline)
    pipeline.wake(shard, restarted=True)
    [(provider_id,)] = pipeline.sql("select provider_id from nightmill.provider_batch")
    until = time.monotonic() + 120
    while pipeline.simulator.books(summary=True)["executed"] < 8:
        assert time.monotonic() < until
        time.sleep(0.05)
    cancel = urllib.request.Request(f"{pipeline.simulator.base_url}/batches/{provider_id}/cancel", method="POST")
    urllib.request.urlopen(cancel, timeout=10).close()
    with pytest.raises(Blocked, match="Somebody cancelled provider batch 1"):
        wake_until(pipeline, shard, "nothing")
    assert counts(pipeline, batch) == {"accepted": 8, "unsettled": 12}
    assert codes(pipeline) == {("transient", "batch_cancelled"): 12}
    set_faults(pipeline.simulator)
    pipeline.drive([shard])  # cleared
    assert counts(pipeline, batch) == {"accepted": ITEMS}
    paid_once(pipeline, ITEMS)
