"""One bad item among good ones, and one mistake that all items share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pipeline import Pipeline
from support.steps import batch_of, counts, one_shard, paid_once, provider_batches, set_faults

from dev.practice_provider.server import RunningSimulator
from nightmill.domain.errors import Blocked
from nightmill.domain.states import BatchState, ProviderBatchState
from nightmill.providers.openai.transport import OpenAIBatches
from nightmill.stages.run_shard import Waiting, refused_file
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.ranges import multirange

StartSimulator = Callable[..., RunningSimulator]


def break_lines(monkeypatch: pytest.MonkeyPatch, *ordinals: int) -> None:
    """Send requests without a body for these items."""
    real = OpenAIBatches.wrap

    def broken(self: OpenAIBatches, record_id: str, body: bytes) -> bytes:
        line = real(self, record_id, body)
        is_bad = int(record_id.rpartition("-")[2]) in ordinals
        return line.replace(b'"body":', b'"nobody":') if is_bad else line

    monkeypatch.setattr(OpenAIBatches, "wrap", broken)


def name_no_line(monkeypatch: pytest.MonkeyPatch, code: str | None = None) -> None:
    """Let the provider's validation keep to itself which line it means."""
    real = OpenAIBatches.poll

    def poll(self: OpenAIBatches, provider_id: str) -> Any:
        snapshot = real(self, provider_id)
        problems = [replace(one, line=None, code=code or one.code) for one in snapshot.complaints]
        return replace(snapshot, complaints=problems)

    monkeypatch.setattr(OpenAIBatches, "poll", poll)


@pytest.mark.parametrize(
    ("code", "kind"), [(None, "input"), ("content_filter", "policy")], ids=["validation", "content filter"]
)
def test_a_bad_item_that_the_provider_does_not_name_is_found_by_halves_and_the_others_are_paid_once(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, code: str | None, kind: str
) -> None:
    break_lines(monkeypatch, 6)
    name_no_line(monkeypatch, code)
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 19, "dead_lettered": 1}
    assert pipeline.sql("select ordinal, class, code, attempts from nightmill.dead_letter") == [
        (6, kind, code or "missing_required_parameter", 1)
    ]
    assert pipeline.sql("select sent_upstream from nightmill.attempt where ordinal = 6") == [(False,)]
    # 20 items: five levels of halves at most, one refused file on each.
    refusals = pipeline.sql("select refused, count(*) from nightmill.provider_batch group by 1 order by 1")
    assert dict(refusals)["unnamed"] <= 5
    assert dict(refusals)["named"] == 1
    paid_once(pipeline, 19)


def test_two_bad_items_far_apart_are_both_found(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    break_lines(monkeypatch, 1, 18)
    name_no_line(monkeypatch)
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 18, "dead_lettered": 2}
    paid_once(pipeline, 18)


def test_a_file_that_is_refused_whatever_is_in_it_ends_in_a_question_and_in_no_dead_letters_of_all(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_lines(monkeypatch, *range(20))
    name_no_line(monkeypatch)
    monkeypatch.setattr(refused_file, "MOST_IN_A_ROW", 6)
    batch, shard = one_shard(pipeline)
    with pytest.raises(Blocked, match=r"refused \d+ files of this shard, \d+ of them without one that it took"):
        pipeline.drive([shard])
    assert batch_of(pipeline, batch.batch_id).state is BatchState.BLOCKED
    assert counts(pipeline, batch) == {"unsettled": 20}
    assert len(provider_batches(pipeline)) <= 8
    paid_once(pipeline, 0)


def test_an_item_that_is_too_long_for_a_file_is_dead_lettered_and_stops_nobody(pipeline: Pipeline) -> None:
    pipeline.documents([("doc-99", "1", "umbrella", "long " * 2_000)])
    pipeline.edit("job.yaml", "poll_interval_s: 1", "poll_interval_s: 1\n  limits: {bytes_per_file: 6000}")
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20, "dead_lettered": 1}
    letters = pipeline.sql("select class, code, message like 'never sent:%%6000 bytes%%', attempts, provider_batch_id "
                           "from nightmill.dead_letter")  # fmt: skip
    assert letters == [("input", "line_too_long", True, 0, None)]
    paid_once(pipeline, 20)


UNSUPPORTED = {
    "status": 400,
    "code": "unsupported_value",
    "message": "Unsupported value: 'temperature' does not support 0.2 with this model.",
    "times": None,
}


def test_an_error_that_all_lines_share_blocks_the_batch_and_gives_up_no_item(pipeline: Pipeline) -> None:
    batch, shard = one_shard(pipeline)
    set_faults(pipeline.simulator, line_error=[UNSUPPORTED])
    with pytest.raises(Blocked, match=r"All 20 lines of .*unsupported_value: Unsupported value: 'temperature'"):
        pipeline.drive([shard])
    assert batch_of(pipeline, batch.batch_id).state is BatchState.BLOCKED
    assert counts(pipeline, batch) == {"unsettled": 20}
    assert isinstance(pipeline.wake(shard), Waiting)
    assert len(provider_batches(pipeline)) == 1

    # Cleared after the account was put right: nothing is lost, nobody is paid twice.
    set_faults(pipeline.simulator)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    paid_once(pipeline, 20)


def test_clearing_an_error_that_all_lines_share_sends_them_once_more_and_then_gives_up(pipeline: Pipeline) -> None:
    batch, shard = one_shard(pipeline)
    set_faults(pipeline.simulator, line_error=[UNSUPPORTED])
    with pytest.raises(Blocked):
        pipeline.drive([shard])
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"dead_lettered": 20}
    assert pipeline.sql("select distinct class, code, attempts from nightmill.dead_letter") == [
        ("input", "unsupported_value", 2)
    ]


def test_a_shared_error_that_repeats_the_prompt_is_shown_by_its_code_only(pipeline: Pipeline) -> None:
    _, shard = one_shard(pipeline)
    pipeline.write("prompt.md", "Keep this instruction to yourself.\n\n{{ body }}\n")
    batch = pipeline.freeze("run-2")
    [shard] = pipeline.plan(batch)
    quoting = {**UNSUPPORTED, "message": "Cannot read: Keep this instruction to yourself."}
    set_faults(pipeline.simulator, line_error=[quoting])
    with pytest.raises(Blocked, match="unsupported_value") as caught:
        pipeline.drive([shard])
    assert "instruction" not in str(caught.value)


def test_one_good_answer_beside_19_that_fail_alike_is_kept_and_a_person_is_asked_about_the_others(
    pipeline: Pipeline,
) -> None:
    batch, shard = one_shard(pipeline)
    set_faults(pipeline.simulator, line_error=[{**UNSUPPORTED, "match": "-([0-9]|1[0-8])$"}])
    with pytest.raises(Blocked, match="19 of the first 20 requests of this batch failed with the same error"):
        pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 1, "unsettled": 19}
    pipeline.drive([shard])  # cleared: it is the documents
    assert counts(pipeline, batch) == {"accepted": 1, "dead_lettered": 19}
    paid_once(pipeline, 1)


def test_below_the_share_good_answers_show_that_the_others_failed_by_themselves(pipeline: Pipeline) -> None:
    batch, shard = one_shard(pipeline)
    set_faults(pipeline.simulator, line_error=[{**UNSUPPORTED, "match": "-([0-9]|1[0-4])$"}])
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 5, "dead_lettered": 15}


def file_of(number: int, ordinals: Sequence[int], how: str | None) -> ProviderBatch:
    unsent: Any = None
    return ProviderBatch(
        provider_batch_id=number, batch_id=1, shard_id=1, state=ProviderBatchState.ABANDONED, token="t", account="a",
        ordinals=multirange(sorted(ordinals)), requests=len(ordinals), prompt_tokens=1, input_ref="f",
        provider_id="p", raw_status="failed", intent_at=unsent,
        creating_at=None, submitted_at=None, ended_at=None, refused=how,
    )  # fmt: skip


@given(st.sets(st.integers(0, 300), min_size=1), st.data())
def test_halving_finds_every_bad_item_and_sends_each_item_in_exactly_one_file(items: set[int], data: Any) -> None:
    bad = data.draw(st.sets(st.sampled_from(sorted(items)), max_size=3))
    wanted, refusals, found, taken = dict.fromkeys(sorted(items), 1), [], set(), set()
    for _ in range(12):
        rest, apart = refused_file.split_suspects(wanted, refusals, {})
        groups = [rest, *apart] if rest else apart
        assert sorted(one for group in groups for one in group) == sorted(wanted)
        for group in groups:
            if not bad & group.keys():
                taken |= group.keys()
            elif len(group) == 1:
                found |= group.keys()
            else:
                refusals.append(file_of(len(refusals) + 1, list(group), "unnamed"))
                continue
            for one in group:
                del wanted[one]
        if not wanted:
            break
    assert (found, taken) == (bad, items - bad)


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "SystemExit(1)", "again(value)"])
def test_a_validator_that_exits_or_recurses_on_one_answer_costs_that_item_only(pipeline: Pipeline, raised: str) -> None:
    judge = (
        "    @field_validator('title')\n    def judge(cls, value):\n"
        f"        if ' 7. ' in value:\n            raise {raised}\n        return value\n"
    )
    again = "def again(value):\n    return again(value)\n\n\n"
    pipeline.edit(
        "output.py", "import BaseModel, ConfigDict\n", f"import BaseModel, ConfigDict, field_validator\n\n{again}"
    )
    pipeline.write("output.py", (pipeline.folder / "output.py").read_text() + judge)
    pipeline.edit("job.yaml", "retry: {", "repair: {attempts: 0}\nretry: {")
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 19, "dead_lettered": 1}
    assert pipeline.sql("select class, code from nightmill.dead_letter") == [("output", "validator_raised")]
