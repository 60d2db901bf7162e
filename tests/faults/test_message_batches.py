"""Faults of whole batches and calls at a provider whose create call carries the requests and keeps no token of ours."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from practice_provider.anthropic_client import AnthropicClient, requests
from support.fault_jobs import ANTHROPIC_SIZES, all_accepted
from support.forced import executions, fault_log, paid_as_forced
from support.pipeline import Pipeline
from support.steps import one_shard, provider_batches, set_faults
from support.vendors import ANTHROPIC, speak
from support.waiting import calls, executed, later

from dev.practice_provider.settings import AnthropicSettings
from nightmill.domain.errors import Blocked, Terminal
from nightmill.operations import answered_create
from nightmill.stages.run_shard import Waiting

CREATE, POLL, CONTENT = ANTHROPIC.create, ANTHROPIC.poll, ANTHROPIC.content
BUSY = {"status": 429, "headers": {"retry-after": "1"}}


@pytest.mark.parametrize("job", ANTHROPIC_SIZES, indirect=True)
@pytest.mark.parametrize(
    "fault",
    [
        {"drop_create_reply": 1},
        {"fail_create_after_accept": 2},
        {"expire_next": 1},
        {"cut_content": 1},
        {"cut_content_unannounced": 1},
        {"hide_files": 3},
        {"hide_counts": 3},
        {"counts_lie": True},
        {"hidden_after_create_s": 2},
        {"refuse_file": {"code": "request_too_large", "message": "Request exceeds the maximum size"}},
        {"call": {"route": POLL, "status": 503, "rate": 0.3, "times": 12}},
        {"call": {"route": POLL, "status": 404, "times": 4}},
        {"call": {"route": POLL, "status": 200, "html": True, "times": 3}},
        {"call": {"route": CONTENT, "status": 502, "times": 4}},
        {"call": {"route": CONTENT, "status": 404, "times": 3}},
        {"call": {"route": CONTENT, "status": 200, "html": True, "times": 3}},
        {"call": {"route": CREATE, "times": 2, **BUSY}},
        {"call": {"route": CREATE, "status": 529, "times": 1}},
        {"call": {"route": CREATE, "status": 413, "html": True, "times": 1}},
    ],
    ids=lambda fault: "-".join(str(part) for one in fault.items() for part in one)[:70],
)
def test_what_happens_to_whole_message_batches_and_calls_costs_no_answer(
    job: tuple[Pipeline, int], fault: dict[str, Any]
) -> None:
    pipeline, items = job
    set_faults(pipeline.simulator, **fault)
    if fault.keys() & {"hide_files", "hide_counts"}:
        pipeline.edit("job.yaml", "results_grace_s: 0", "results_grace_s: 900")
    batch = all_accepted(pipeline, items)
    assert bool(fault_log(pipeline.simulator)) is not ("counts_lie" in fault)
    assert executions(pipeline.simulator).total() == items
    paid_as_forced(pipeline.simulator, items)
    assert pipeline.sql("select count(*) from nightmill.dead_letter where batch_id = %s", batch.batch_id) == [(0,)]


@pytest.mark.parametrize("job", ANTHROPIC_SIZES, indirect=True)
def test_an_organisations_limit_of_a_third_of_the_job_fails_no_item(job: tuple[Pipeline, int], start_simulator) -> None:
    pipeline, items = job
    settings = AnthropicSettings(queued_requests=items // 3, retry_after_s=1)
    pipeline.simulator = start_simulator(anthropic=settings)
    all_accepted(pipeline, items)
    paid_as_forced(pipeline.simulator, items)


@pytest.fixture
def shard(pipeline: Pipeline) -> int:
    """One shard of 20 documents, whose create call loses its reply."""
    speak(pipeline, ANTHROPIC)
    return one_shard(pipeline)[1]


def woken(pipeline: Pipeline, shard: int, times: int = 3) -> str:
    """What the last of some wake-ups said; each of them waits."""
    lines = []
    for _ in range(times):
        decision = pipeline.wake(shard)
        assert isinstance(decision, Waiting)
        lines.append(decision.line)
    return lines[-1]


def submitted_by_others(pipeline: Pipeline, count: int) -> str:
    """The id of a batch that another program made in the same workspace."""
    other = AnthropicClient(pipeline.simulator)
    try:
        return other.submit(requests(count)).id
    finally:
        other.close()


def test_a_lost_create_that_cannot_be_proved_waits_and_is_asked_and_never_paid_again(
    pipeline: Pipeline, shard: int
) -> None:
    set_faults(pipeline.simulator, drop_create_reply=1, hold=True, hold_after=0)
    told = woken(pipeline, shard)
    [made] = pipeline.simulator.books(summary=True)["batches"]
    assert made["id"] in told
    later(pipeline, hours=20)
    assert made["id"] in woken(pipeline, shard)
    later(pipeline, hours=60)
    with pytest.raises(Blocked) as asked:
        pipeline.wake(shard)
    for word in (made["id"], "20 requests", "in_progress", "nightmill lost-create --provider-batch", "--not-taken"):
        assert word in str(asked.value)
    assert calls(pipeline)[CREATE] == 1
    pipeline.clock_offset = timedelta()
    [(number,)] = pipeline.sql("select provider_batch_id from nightmill.provider_batch")
    with pytest.raises(Terminal, match="has 3 requests"):
        answered_create.run(pipeline.env, number, submitted_by_others(pipeline, 3))
    answered_create.run(pipeline.env, number, made["id"])
    set_faults(pipeline.simulator)
    pipeline.drive([shard])
    assert calls(pipeline)[CREATE] == 2  # one of them is the others'
    assert executed(pipeline) == 20 + 3


def test_a_lost_create_is_found_once_its_results_show_our_ids(pipeline: Pipeline, shard: int) -> None:
    set_faults(pipeline.simulator, drop_create_reply=1, hold=True, hold_after=5)
    woken(pipeline, shard)
    set_faults(pipeline.simulator)
    pipeline.drive([shard])
    [(state, _, adopted)] = provider_batches(pipeline)
    assert (state, adopted) == ("COLLECTED", True)
    assert calls(pipeline)[CREATE] == 1
    assert executed(pipeline) == 20


@pytest.mark.parametrize(
    "odd",
    [
        {"clock_behind_s": 3600},
        {"clock_behind_s": -3600},
        {"listing": {"order": "oldest first", "before": 5}},
        {"listing": {"before": 1_500, "after": 1_500}},
    ],
    ids=["an hour behind", "an hour ahead", "oldest first", "among 3,000 others"],
)
def test_a_lost_create_is_found_whatever_the_clock_and_the_listing_look_like(
    pipeline: Pipeline, shard: int, odd: dict[str, Any]
) -> None:
    set_faults(pipeline.simulator, drop_create_reply=1, **odd)
    pipeline.drive([shard])
    [(state, _, adopted)] = provider_batches(pipeline)
    assert (state, adopted) == ("COLLECTED", True)
    assert executed(pipeline) == 20


def test_a_listing_that_repeats_itself_proves_nothing_and_a_person_is_asked(pipeline: Pipeline, shard: int) -> None:
    set_faults(pipeline.simulator, call={"route": CREATE, "status": 529, "times": 1}, listing={"repeating": True})
    woken(pipeline, shard)
    later(pipeline, hours=30)
    with pytest.raises(Blocked, match="lost-create"):
        for _ in range(200):
            pipeline.wake(shard)
            later(pipeline, hours=1)
    assert calls(pipeline)[CREATE] == 1
    assert executed(pipeline) == 0


def test_a_batch_of_the_same_size_that_is_somebody_elses_is_not_taken_for_a_lost_one(
    pipeline: Pipeline, shard: int
) -> None:
    theirs = submitted_by_others(pipeline, 20)
    set_faults(pipeline.simulator, call={"route": CREATE, "status": 529, "times": 1})
    pipeline.drive([shard])
    states = [(state, adopted) for state, _, adopted in provider_batches(pipeline)]
    assert states == [("ABANDONED", None), ("COLLECTED", False)]
    assert pipeline.sql("select count(*) from nightmill.provider_batch where provider_id = %s", theirs) == [(0,)]
    assert executed(pipeline) == 40


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        ({"status": 429, "code": "enforced_spend_limit_reached"}, ["enforced_spend_limit_reached", "billing"]),
        ({"status": 402}, ["billing_error", "billing"]),
        ({"status": 400, "message": "You have reached your specified workspace API usage limits."}, ["billing"]),
        ({"status": 403}, ["permission_error", "key"]),
        ({"status": 401}, ["authentication_error", "key"]),
    ],
)
def test_what_only_a_person_can_mend_is_asked_and_nothing_is_sent_meanwhile(
    pipeline: Pipeline, shard: int, refusal: dict[str, Any], words: list[str]
) -> None:
    set_faults(pipeline.simulator, call={"route": CREATE, "times": 1, **refusal})
    with pytest.raises(Blocked) as asked:
        pipeline.drive([shard])
    for word in [*words, "provider"]:
        assert word in str(asked.value)
    pipeline.drive([shard])  # cleared, once it is mended
    assert executed(pipeline) == 20


def test_lines_that_are_not_executed_cost_nothing_in_the_ledger(pipeline: Pipeline, shard: int) -> None:
    set_faults(pipeline.simulator, line_error=[{"rate": 0.3, "seed": 1, "status": 529}])
    pipeline.drive([shard])
    books = pipeline.simulator.books(summary=True)
    assert books["failed"] > 0
    [spent] = pipeline.sql("select sum(prompt_tokens)::int, sum(output_tokens)::int, count(*) from nightmill.attempt")
    usage = books["usage"]
    assert spent == (usage["prompt_tokens"], usage["completion_tokens"], 20 + books["failed"])
    assert counts_all_accepted(pipeline)


def counts_all_accepted(pipeline: Pipeline) -> bool:
    return pipeline.sql("select distinct kind from nightmill.outcome") == [("accepted",)]
