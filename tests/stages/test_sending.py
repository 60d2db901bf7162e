"""run_shard on the way out: lost replies, refusals, limits, blocked batches, keys that another batch carries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import (
    batch_of,
    cancel,
    counts,
    one_shard,
    paid_once,
    provider_batches,
    publish_unchecked,
    set_faults,
    wake_until,
)

from dev.practice_provider.server import RunningSimulator
from nightmill.domain.errors import Blocked, ProviderUnavailable, StaleWriter, SubmitUnknown
from nightmill.domain.snapshots import Absent
from nightmill.domain.states import BatchState
from nightmill.providers.openai.transport import OpenAIBatches
from nightmill.stages.run_shard import Finished, Waiting

StartSimulator = Callable[..., RunningSimulator]


@pytest.mark.parametrize("fault", ["drop_create_reply", "fail_create_after_accept"])
def test_a_batch_whose_create_reply_was_lost_is_adopted_by_the_next_wake_up_and_paid_once(
    pipeline: Pipeline, fault: str
) -> None:
    pipeline.edit("job.yaml", "quiet_period_s: 0", "quiet_period_s: 600")
    batch, shard = one_shard(pipeline)
    set_faults(pipeline.simulator, **{fault: 1})
    first = pipeline.wake(shard, restarted=True)
    assert "ended without an answer" in first.line
    assert [row[0] for row in provider_batches(pipeline)] == ["CREATING"]

    second = pipeline.wake(shard)
    assert "adopted 20 requests" in second.line
    pipeline.drive([shard])

    assert provider_batches(pipeline) == [("COLLECTED", "every line is in the ledger", True)]
    assert publish_unchecked(pipeline, batch).counts == {"accepted": 20}
    assert len(pipeline.simulator.books(summary=True)["batches"]) == 1
    paid_once(pipeline, 20)


def test_c26_what_another_account_may_have_accepted_is_asked_about_and_never_sent_again(
    pipeline: Pipeline, start_simulator: StartSimulator
) -> None:
    _, shard = one_shard(pipeline)
    set_faults(pipeline.simulator, drop_create_reply=1)
    pipeline.wake(shard, restarted=True)
    other = start_simulator()

    pipeline.base_url = other.base_url
    with pytest.raises(Blocked, match="another account or key"):
        pipeline.wake(shard)
    pipeline.base_url = pipeline.simulator.base_url
    pipeline.drive([shard])

    assert other.books(summary=True)["batches"] == []
    paid_once(pipeline, 20)


def test_a_batch_that_the_provider_does_not_list_counts_as_absent_only_after_the_quiet_period(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.edit("job.yaml", "quiet_period_s: 0", "quiet_period_s: 600")
    batch, shard = one_shard(pipeline)
    with monkeypatch.context() as patch:
        patch.setattr(OpenAIBatches, "create", _never_arrives)
        pipeline.wake(shard, restarted=True)
    for _ in range(3):
        assert "not seen at the provider so far" in pipeline.wake(shard).line
    assert pipeline.simulator.books(summary=True)["batches"] == []

    pipeline.clock_offset += timedelta(seconds=606)
    pipeline.drive([shard])

    assert [row[:2] for row in provider_batches(pipeline)] == [
        ("ABANDONED", "absent at the provider after the quiet period"),
        ("COLLECTED", "every line is in the ledger"),
    ]
    assert counts(pipeline, batch) == {"accepted": 20}
    paid_once(pipeline, 20)


def test_a_second_lost_reply_has_a_quiet_period_of_its_own(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """The listing lags: had the second create's quiet period begun with the first one, a third would be paid twice."""
    pipeline.edit("job.yaml", "quiet_period_s: 0", "quiet_period_s: 600")
    batch, shard = one_shard(pipeline)
    with monkeypatch.context() as patch:
        patch.setattr(OpenAIBatches, "create", _never_arrives)
        pipeline.wake(shard, restarted=True)
    pipeline.sql("update nightmill.provider_batch set creating_at = creating_at - interval '700 seconds'")
    set_faults(pipeline.simulator, drop_create_reply=1)
    with monkeypatch.context() as patch:
        patch.setattr(OpenAIBatches, "lookup", lambda *_: Absent())
        pipeline.wake(shard)
        for _ in range(3):
            assert "not seen at the provider so far" in pipeline.wake(shard).line
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    assert len(pipeline.simulator.books(summary=True)["batches"]) == 1
    paid_once(pipeline, 20)


def test_a_create_that_arrives_after_its_batch_was_given_up_finds_no_input_file(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[tuple[Any, ...]] = []

    def delayed(*arguments: Any) -> None:
        late.append(arguments)
        raise SubmitUnknown("timed out", "wait")

    batch, shard = one_shard(pipeline)
    with monkeypatch.context() as patch:
        patch.setattr(OpenAIBatches, "create", delayed)
        pipeline.wake(shard, restarted=True)
    pipeline.clock_offset += timedelta(seconds=10)
    pipeline.drive([shard])
    [(_, file_id, token)] = late
    with pipeline.env.provider(pipeline.live) as provider, pytest.raises(ProviderUnavailable):
        provider.transport.create(file_id, token)
    assert counts(pipeline, batch) == {"accepted": 20}
    paid_once(pipeline, 20)


def _never_arrives(*_: Any) -> None:
    raise SubmitUnknown("timed out", "wait")


def test_an_unreachable_provider_is_waited_for_and_asked_once_per_wake_up(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.edit("job.yaml", "poll_interval_s: 1", "poll_interval_s: 1\n  limits: {requests_per_file: 5}")
    batch, shard = one_shard(pipeline)
    calls: list[int] = []

    def upload(*_: Any) -> str:
        calls.append(1)
        raise ProviderUnavailable("down", "wait", retry_after_s=77)

    with monkeypatch.context() as patch:
        patch.setattr(OpenAIBatches, "stage_input", upload)
        decision = pipeline.wake(shard, restarted=True)
    assert isinstance(decision, Waiting)
    assert len(calls) == 1
    assert timedelta(seconds=70) < decision.until - pipeline.env.now() <= timedelta(seconds=77)
    pipeline.wake(shard, restarted=True)  # a person clears the task rather than wait
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    assert len([row for row in provider_batches(pipeline) if row[0] == "COLLECTED"]) == 4
    paid_once(pipeline, 20)


def test_an_unknown_model_blocks_the_batch_and_spends_no_item(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "model: echo-1", "model: nonesuch-1")
    batch, shard = one_shard(pipeline)
    with pytest.raises(Blocked, match=r"as a whole \(model_not_found\).*Remedy: Correct provider.model"):
        wake_until(pipeline, shard, "COLLECTED")
    blocked = batch_of(pipeline, batch.batch_id)
    assert (blocked.state, blocked.blocked_by) == (BatchState.BLOCKED, f"shard {shard}")
    assert counts(pipeline, batch) == {"unsettled": 20}

    cancel(pipeline, batch.batch_id)
    pipeline.edit("job.yaml", "model: nonesuch-1", "model: echo-1")
    following = pipeline.freeze("run-2")
    pipeline.drive(pipeline.plan(following))
    assert counts(pipeline, following) == {"accepted": 20}


def test_a_window_that_the_provider_does_not_have_is_shown_and_a_new_run_with_another_one_goes_on(
    pipeline: Pipeline,
) -> None:
    pipeline.edit("job.yaml", "model: echo-1", "model: echo-1\n  completion_window: 7d")
    batch, shard = one_shard(pipeline)
    with pytest.raises(Blocked) as refused:
        pipeline.drive([shard])
    said = str(refused.value)
    assert "(HTTP 400, invalid_value, completion_window: 'completion_window' must be 24h)" in said
    assert "Remedy: Correct provider.completion_window in job.yaml, then cancel this run and start a new one" in said
    pipeline.edit("job.yaml", "completion_window: 7d", "completion_window: 24h")
    with pytest.raises(Blocked, match="must be 24h"):
        pipeline.wake(shard, restarted=True)  # clearing it changes nothing, as the remedy says
    cancel(pipeline, batch.batch_id)
    following = pipeline.freeze("run-2")
    pipeline.drive(pipeline.plan(following))
    assert counts(pipeline, following) == {"accepted": 20}


def test_lines_that_the_validation_names_are_cut_out_and_the_others_go_on(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = OpenAIBatches.wrap

    def broken(self: OpenAIBatches, record_id: str, body: bytes) -> bytes:
        line = real(self, record_id, body)
        return line.replace(b'"body":', b'"nobody":') if record_id.endswith(("-3", "-11")) else line

    monkeypatch.setattr(OpenAIBatches, "wrap", broken)
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 18, "dead_lettered": 2}
    letters = pipeline.sql("select ordinal, class, code, message from nightmill.dead_letter order by ordinal")
    assert letters == [
        (3, "input", "missing_required_parameter", "Missing required parameter: 'body'."),
        (11, "input", "missing_required_parameter", "Missing required parameter: 'body'."),
    ]
    paid_once(pipeline, 18)


def _total_tokens(pipeline: Pipeline) -> int:
    [(total,)] = pipeline.sql("select sum(tokens)::int from nightmill.item")
    return int(total)


def test_a_known_enqueued_limit_of_a_third_of_the_job_is_never_exceeded(
    pipeline: Pipeline, start_simulator: StartSimulator
) -> None:
    batch = pipeline.freeze()
    limit = _total_tokens(pipeline) // 3
    pipeline.simulator = start_simulator(enqueued_tokens=limit)
    pipeline.edit(
        "job.yaml", "poll_interval_s: 1", f"poll_interval_s: 1\n  limits: {{enqueued_prompt_tokens: {limit}}}"
    )
    pipeline.drive(pipeline.plan(batch))
    assert counts(pipeline, batch) == {"accepted": 20}
    books = pipeline.simulator.books(summary=True)
    assert {one["status"] for one in books["batches"]} == {"completed"}
    assert len(books["batches"]) >= 3
    paid_once(pipeline, 20)


def test_an_enqueued_limit_that_nobody_told_us_is_found_by_smaller_files(
    pipeline: Pipeline, start_simulator: StartSimulator
) -> None:
    batch, shard = one_shard(pipeline)
    pipeline.simulator = start_simulator(enqueued_tokens=_total_tokens(pipeline) // 3)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    assert pipeline.sql("select count(*) from nightmill.attempt") == [(20,)]
    refused = [row for row in provider_batches(pipeline) if row[0] == "ABANDONED"]
    assert refused
    assert all("no room in the account's queue" in reason for _, reason, _ in refused)
    paid_once(pipeline, 20)


def test_a_wrong_key_blocks_the_batch_and_names_the_connection(
    pipeline: Pipeline, start_simulator: StartSimulator
) -> None:
    right, pipeline.simulator = pipeline.simulator, start_simulator(api_key="another")
    batch = pipeline.freeze()
    first, second = pipeline.plan(batch)
    with pytest.raises(Blocked, match=r"connection 'provider'.*Remedy: Check key"):
        pipeline.wake(first, restarted=True)
    assert batch_of(pipeline, batch.batch_id).state is BatchState.BLOCKED

    # While the batch waits for a person nothing is sent, whoever wakes up; a shard that waits waits long.
    pipeline.simulator = right
    waiting = pipeline.wake(second, restarted=True)
    assert isinstance(waiting, Waiting)
    assert waiting.until - pipeline.env.now() > timedelta(seconds=290)
    assert isinstance(pipeline.wake(first), Waiting)
    assert right.books(summary=True)["batches"] == []

    pipeline.wake(first, restarted=True)  # cleared
    pipeline.drive([first, second])
    assert counts(pipeline, batch) == {"accepted": 20}
    paid_once(pipeline, 20)


def test_in_a_blocked_batch_other_shards_collect_what_is_paid_and_send_nothing(
    pipeline: Pipeline, start_simulator: StartSimulator
) -> None:
    right, wrong = pipeline.simulator, start_simulator(api_key="another")
    set_faults(right, hold=True, line_error=[{"match": "-15$", "times": 1}])
    batch = pipeline.freeze()
    first, second = pipeline.plan(batch)
    pipeline.wake(second, restarted=True)
    pipeline.simulator = wrong
    with pytest.raises(Blocked):
        pipeline.wake(first, restarted=True)
    pipeline.simulator = right
    set_faults(right, hold=False, line_error=[{"match": "-15$", "times": 1}])
    wake_until(pipeline, second, "COLLECTED")
    assert "not sent: the batch is BLOCKED" in pipeline.wake(second).line
    assert counts(pipeline, batch)["accepted"] > 0
    assert len(right.books(summary=True)["batches"]) == 1
    pipeline.wake(first, restarted=True)
    pipeline.drive([first, second])
    assert counts(pipeline, batch) == {"accepted": 20}
    paid_once(pipeline, 20)


def test_a_stale_worker_creates_nothing(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    _, shard = one_shard(pipeline)
    real = OpenAIBatches.stage_input

    def upload(self: OpenAIBatches, path: Any) -> str:
        monkeypatch.setattr(OpenAIBatches, "stage_input", real)
        pipeline.wake(shard)  # somebody else takes over in the meantime
        return real(self, path)

    monkeypatch.setattr(OpenAIBatches, "stage_input", upload)
    with pytest.raises(StaleWriter):
        pipeline.wake(shard, restarted=True)
    pipeline.drive([shard])
    assert len(pipeline.simulator.books(summary=True)["batches"]) == 1
    paid_once(pipeline, 20)


def test_keys_that_another_batch_of_the_job_carries_wait_and_are_then_reused(pipeline: Pipeline) -> None:
    set_faults(pipeline.simulator, hold=True)
    first, first_shard = one_shard(pipeline)
    pipeline.wake(first_shard, restarted=True)
    second = pipeline.freeze("run-2")
    [second_shard] = pipeline.plan(second)
    waiting = pipeline.wake(second_shard, restarted=True)
    assert isinstance(waiting, Waiting)
    assert "20 items wait for the answer that another batch is getting" in waiting.line
    assert len(provider_batches(pipeline)) == 1

    set_faults(pipeline.simulator)
    pipeline.drive([first_shard])
    assert isinstance(pipeline.wake(second_shard), Finished)
    assert (counts(pipeline, first), counts(pipeline, second)) == ({"accepted": 20}, {"reused": 20})
    paid_once(pipeline, 20)


def test_of_two_batches_that_render_the_same_keys_at_once_only_one_sends_them(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nightmill.stages.run_shard import render

    first, first_shard = one_shard(pipeline)
    second = pipeline.freeze("run-2")
    [second_shard] = pipeline.plan(second)
    real = render.one_file

    def overtaken(*arguments: Any) -> render.RequestFile:
        monkeypatch.setattr(render, "one_file", real)
        file = real(*arguments)
        pipeline.wake(second_shard, restarted=True)
        return file

    monkeypatch.setattr(render, "one_file", overtaken)
    assert "were sent by another batch just now" in pipeline.wake(first_shard, restarted=True).line
    pipeline.drive([second_shard])
    pipeline.drive([first_shard])
    assert (counts(pipeline, first), counts(pipeline, second)) == ({"reused": 20}, {"accepted": 20})
    paid_once(pipeline, 20)


def test_an_intent_left_by_a_dead_worker_is_not_sent_while_the_batch_is_blocked(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = pipeline.freeze()
    first, second = pipeline.plan(batch)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(OpenAIBatches, "stage_input", _dies)
        pipeline.wake(first, restarted=True)
    pipeline.sql(
        "update nightmill.batch set state = 'BLOCKED', blocked_from = 'RUNNING', blocked_by = %s", f"shard {second}"
    )
    assert "is not sent: the batch is BLOCKED" in pipeline.wake(first).line
    assert pipeline.simulator.books(summary=True)["batches"] == []
    pipeline.wake(second, restarted=True)
    pipeline.drive([first, second])
    assert counts(pipeline, batch) == {"accepted": 20}
    paid_once(pipeline, 20)


def _dies(*_: Any) -> str:
    raise KeyboardInterrupt


def test_a_provider_batch_that_the_provider_does_not_know_any_more_needs_a_person_after_two_days(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_faults(pipeline.simulator, hold=True)
    _, shard = one_shard(pipeline)
    pipeline.wake(shard, restarted=True)

    def gone(*_: Any) -> None:
        raise ProviderUnavailable("404", "wait")

    monkeypatch.setattr(OpenAIBatches, "poll", gone)
    assert isinstance(pipeline.wake(shard), Waiting)
    pipeline.clock_offset += timedelta(hours=49)
    with pytest.raises(Blocked, match="has not ended"):
        pipeline.wake(shard)
