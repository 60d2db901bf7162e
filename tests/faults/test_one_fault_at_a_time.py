"""One fault at a time over a whole job: every item is accepted, and paid once plus exactly what the fault forced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.fault_jobs import LARGE, OPENAI_SIZES, SECONDS, SIZES, SMALL, Answers, all_accepted, given, odd
from support.forced import executions, fault_log, forced_executions, paid_as_forced
from support.pipeline import Pipeline
from support.steps import counts, set_faults
from support.vendors import VENDORS

from dev.practice_provider.server import RunningSimulator

StartSimulator = Callable[..., RunningSimulator]

FREE = {
    "fenced 10%": [("fenced", 0.10)],
    "encoded twice 5%": [("encoded_twice", 0.05)],
    "doubled 1%": [("doubled", 0.01)],
    "foreign lines 5%": [("foreign", 0.05)],
    "ids in both files 5%": [("both_files", 0.05)],
    "string bodies 10%": [("string_body", 0.10)],
    "no usage 10%": [("no_usage", 0.10)],
    "CRLF, blank lines and byte order marks": [("crlf", 0.10), ("blank_line", 0.10), ("bom", 0.10)],
    "NUL, U+2028 and half pairs": [("nul", 0.10), ("line_separator", 0.10), ("surrogate", 0.10)],
}
SPOILING = {
    "lost 1% and doubled 1%": [("lost", 0.01), ("doubled", 0.01)],
    "conflicting lines 2%": [("conflicting", 0.02)],
    "half lines 2%": [("half_line", 0.02)],
    "truncated 3%, fenced 10%, prose 2%, wrong type 2%": [
        ("truncated", 0.03),
        ("fenced", 0.10),
        ("prose", 0.02),
        ("wrong_type", 0.02),
    ],
    "NaN, huge integers and deep nesting": [("nan", 0.03), ("huge_integer", 0.03), ("deep", 0.01)],
    "errors in bodies, status 0 and bodies without an answer": [
        ("error_in_body", 0.03),
        ("status_zero", 0.03),
        ("no_answer", 0.03),
    ],
    "refusals and empty answers": [("refusal", 0.02), ("empty", 0.02)],
}


def alone(kinds: dict[str, Answers]) -> list[Any]:
    """Each by itself over 2,000 items; tests/cases has each in `make test` too, over one shard."""
    return [
        pytest.param(value, (vendor, LARGE), id=f"{vendor}-{name}", marks=pytest.mark.slow)
        for vendor in VENDORS
        for name, value in kinds.items()
    ]


def together(kinds: dict[str, Answers]) -> list[Any]:
    """All of them in one small job, no two on one item: at most nine items of ten are struck."""
    answers = [one for value in kinds.values() for one in value]
    share = min(1.0, 0.9 / sum(rate for _, rate in answers))
    answers = [(kind, rate * share) for kind, rate in answers]
    return [pytest.param(answers, (vendor, SMALL), id=f"{vendor}-all together") for vendor in VENDORS]


@pytest.mark.parametrize(("answers", "job"), [*alone(FREE), *together(FREE)], indirect=["job"])
def test_what_an_answer_survives_costs_nothing(job: tuple[Pipeline, int], answers: Answers) -> None:
    pipeline, items = job
    answers = given(pipeline, answers)
    set_faults(pipeline.simulator, answer=odd(answers))
    all_accepted(pipeline, items)
    assert {one["kind"] for one in fault_log(pipeline.simulator, "answer")} == {kind for kind, _ in answers}
    assert executions(pipeline.simulator).total() == items
    paid_as_forced(pipeline.simulator, items)


@pytest.mark.parametrize(("answers", "job"), [*alone(SPOILING), *together(SPOILING)], indirect=["job"])
def test_what_spoils_an_answer_is_asked_again_once_for_each_time(job: tuple[Pipeline, int], answers: Answers) -> None:
    pipeline, items = job
    answers = given(pipeline, answers)
    set_faults(pipeline.simulator, answer=odd(answers))
    all_accepted(pipeline, items)
    assert forced_executions(pipeline.simulator).total() > 0
    paid_as_forced(pipeline.simulator, items)


@pytest.mark.parametrize("job", SIZES, indirect=True)
def test_server_errors_in_five_percent_of_the_lines_cost_a_request_each_and_no_answer(
    job: tuple[Pipeline, int],
) -> None:
    pipeline, items = job
    set_faults(pipeline.simulator, line_error={"rate": 0.05, "seed": 1})
    all_accepted(pipeline, items)
    books = pipeline.simulator.books(summary=True)
    failed = len(fault_log(pipeline.simulator, "line_error"))
    assert failed > 0
    assert (books["executed"], books["failed"]) == (items, failed)
    assert pipeline.sql("select count(*) from nightmill.attempt") == [(items + failed,)]


def sizes_of(faults: list[dict[str, Any]]) -> list[Any]:
    """Each over 2,000 items; those that no test in tests/cases has over a few items too."""
    sizes = []
    for fault in faults:
        name = "-".join(str(part) for one in fault.items() for part in one)[:70]
        sizes.append(pytest.param(fault, ("openai", LARGE), id=f"{name}-{LARGE}", marks=pytest.mark.slow))
        if SMALL_TOO & fault.keys():
            sizes.append(pytest.param(fault, ("openai", SMALL), id=f"{name}-{SMALL}"))
    return sizes


SMALL_TOO = {  # of the others tests/cases has a small form
    "drop_create_reply", "expire_next", "cut_content", "refuse_file", "counts_lie",
}  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "job"),
    sizes_of(
        [
            {"drop_create_reply": 1},
            {"fail_create_after_accept": 2},
            {"expire_next": 1},
            {"cut_content": 1},
            {"cut_content_unannounced": 1},
            {"hide_files": 3},
            {"counts_lie": True},
            {"empty_error_files": True},
            {"refuse_file": {"code": "token_limit_exceeded", "times": 2}},
            {"call": {"route": "GET /v1/batches/{batch_id}", "status": 503, "rate": 0.3, "times": 12}},
            {"call": {"route": "GET /v1/batches/{batch_id}", "status": 404, "times": 4}},
            {"call": {"route": "GET /v1/batches/{batch_id}", "status": 200, "html": True, "times": 3}},
            {"call": {"route": "GET /v1/files/{file_id}/content", "status": 502, "times": 4}},
            {"call": {"route": "GET /v1/files/{file_id}/content", "status": 200, "html": True, "times": 3}},
            {"call": {"route": "POST /v1/files", "status": 500, "times": 3}},
            {"call": {"route": "POST /v1/batches", "status": 429, "times": 2}},
            {"call": {"route": "POST /v1/batches", "status": 529, "times": 1}},
        ]
    ),
    indirect=["job"],
)
def test_what_happens_to_whole_batches_and_calls_costs_no_answer(
    job: tuple[Pipeline, int], fault: dict[str, Any]
) -> None:
    pipeline, items = job
    set_faults(pipeline.simulator, **fault)
    if "hide_files" in fault:
        pipeline.edit("job.yaml", "results_grace_s: 0", "results_grace_s: 900")
    batch = all_accepted(pipeline, items)
    always = "counts_lie" in fault or "empty_error_files" in fault
    assert bool(fault_log(pipeline.simulator)) is not always
    assert executions(pipeline.simulator).total() == items
    paid_as_forced(pipeline.simulator, items)
    assert pipeline.sql("select count(*) from nightmill.dead_letter where batch_id = %s", batch.batch_id) == [(0,)]


@pytest.mark.parametrize("job", OPENAI_SIZES, indirect=True)
def test_an_enqueued_limit_of_a_third_of_the_job_fails_no_item(
    job: tuple[Pipeline, int], start_simulator: StartSimulator
) -> None:
    pipeline, items = job
    batch = pipeline.freeze()
    shards = pipeline.plan(batch)
    [(tokens,)] = pipeline.sql("select sum(tokens) from nightmill.item where batch_id = %s", batch.batch_id)
    pipeline.simulator = start_simulator(enqueued_tokens=int(tokens) // 3)
    pipeline.drive(shards, SECONDS)
    assert counts(pipeline, batch) == {"accepted": items}
    paid_as_forced(pipeline.simulator, items)
    assert pipeline.sql("select count(*) from nightmill.attempt") == [(items,)]
