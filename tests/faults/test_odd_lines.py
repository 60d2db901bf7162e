"""Result lines, error lines and complaints as other servers write them, over a whole job: no item is lost, none is paid
again without need, and no wrong value is published."""

from __future__ import annotations

from typing import Any

import pytest
from support.fault_jobs import OPENAI_SIZES, SIZES, Answers, all_accepted, driven, given, no_wrong_value, odd
from support.forced import executions, fault_log, forced_executions, paid_as_forced
from support.pipeline import Pipeline
from support.steps import counts, set_faults

from dev.practice_provider.line_shapes import SHAPES
from nightmill.storage import usage

FREE = {
    "usage that cannot be 20%, cache reads and reasoning 20%": [("impossible_usage", 0.20), ("cached_usage", 0.20)],
    "the same answer with other usage, choices out of order, reasoning beside the answer": [
        ("other_usage", 0.05),
        ("choices_shuffled", 0.10),
        ("reasoning_parts", 0.10),
        ("thoughts", 0.10),
    ],
    "an answer in the error file, an error of nulls, a status in words, other finish reasons": [
        ("swapped_files", 0.05),
        ("error_of_nulls", 0.10),
        ("status_in_words", 0.10),
        ("other_finish", 0.10),
        ("unknown_finish", 0.10),
    ],
}
SPOILING = {
    "three answers 3%, reasoning or a tool call in place of an answer 3%": [
        ("three_answers", 0.03),
        ("reasoning_only", 0.03),
        ("tool_call", 0.03),
    ],
    "model_length, MAX_TOKENS and error as finish reasons 3%": [
        ("model_length", 0.03),
        ("max_tokens", 0.03),
        ("finish_error", 0.03),
    ],
}
TOO_LONG = {
    "status": 400,
    "code": "invalid_request",
    "type": "invalid_request_error",
    "message": "request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it",
    "times": None,
}


@pytest.mark.parametrize("job", SIZES, indirect=True)
@pytest.mark.parametrize("answers", [pytest.param(value, id=name) for name, value in (FREE | SPOILING).items()])
def test_an_odd_line_costs_what_it_forces_and_publishes_no_wrong_value(
    job: tuple[Pipeline, int], answers: Answers
) -> None:
    pipeline, items = job
    is_spoiling, answers = answers in SPOILING.values(), given(pipeline, answers)
    set_faults(pipeline.simulator, answer=odd(answers))
    batch = all_accepted(pipeline, items)
    kinds = {kind for kind, _ in answers}
    assert {one["kind"] for one in fault_log(pipeline.simulator, "answer")} == kinds
    forced = forced_executions(pipeline.simulator).total()
    assert (forced > 0) is is_spoiling
    paid_as_forced(pipeline.simulator, items)
    no_wrong_value(pipeline, batch)
    struck = sum(one["kind"] == "impossible_usage" for one in fault_log(pipeline.simulator, "answer"))
    assert pipeline.sql("select count(*) from nightmill.attempt where odd_usage is not null") == [(struck,)]


def shaped(fault: dict[str, Any]) -> list[dict[str, Any]]:
    """The same error in every shape that servers write it in, side by side."""
    return [{**fault, "shape": shape, "rate": 0.02, "start": n * 0.02} for n, shape in enumerate(SHAPES)]


@pytest.mark.parametrize("job", OPENAI_SIZES, indirect=True)
def test_a_server_error_is_asked_again_once_in_whatever_shape_it_comes(job: tuple[Pipeline, int]) -> None:
    pipeline, items = job
    set_faults(pipeline.simulator, line_error=shaped({"status": 503, "code": "overloaded", "type": "server_error"}))
    batch = all_accepted(pipeline, items)
    books, failed = pipeline.simulator.books(summary=True), len(fault_log(pipeline.simulator, "line_error"))
    assert failed > 0
    assert (books["executed"], books["failed"]) == (items, failed)
    assert pipeline.sql("select count(*) from nightmill.attempt") == [(items + failed,)]
    no_wrong_value(pipeline, batch)


@pytest.mark.parametrize("job", OPENAI_SIZES, indirect=True)
def test_a_request_that_is_too_long_is_sent_once_in_whatever_shape_its_refusal_comes_and_is_not_estimated_as_paid(
    job: tuple[Pipeline, int],
) -> None:
    pipeline, items = job
    set_faults(pipeline.simulator, line_error=shaped(TOO_LONG), usage_shown="none")
    batch = driven(pipeline)
    refused = [one["custom_id"] for one in fault_log(pipeline.simulator, "line_error")]
    assert len(refused) == len(set(refused)) > 0
    assert counts(pipeline, batch) == {"accepted": items - len(refused), "dead_lettered": len(refused)}
    assert executions(pipeline.simulator).total() == items - len(refused)
    letters = pipeline.sql("select class, code, attempts from nightmill.dead_letter")
    # A status in words, and nothing else, is all that one of the shapes says.
    assert set(letters) == {("input", "context_length_exceeded", 1), ("input", "http_400", 1)}
    with pipeline.env.ledger() as conn:
        spent = usage.spent(conn, batch.batch_id)
    assert (spent.requests, spent.estimated) == (items, 0)
    assert spent.prompt == pipeline.simulator.books(summary=True)["usage"]["prompt_tokens"]
    no_wrong_value(pipeline, batch)


@pytest.mark.parametrize("job", OPENAI_SIZES, indirect=True)
@pytest.mark.parametrize(
    "named", [{"first_line": 0}, {"first_line": 1}, {"first_line": 0, "custom_ids": True}], ids=["0", "1", "custom ids"]
)
def test_a_complaint_that_counts_lines_from_0_or_1_gives_up_the_bad_items_and_no_other(
    job: tuple[Pipeline, int], named: dict[str, Any]
) -> None:
    pipeline, items = job
    bad = r"Text number (7|8|61|150)\."
    set_faults(pipeline.simulator, refuse_file={"match": bad, "named": True, "times": None, **named})
    batch = driven(pipeline)
    assert pipeline.sql(
        "select source_id, class from nightmill.dead_letter join nightmill.item using (batch_id, ordinal) order by 1"
    ) == [(f"doc-{n:05}", "input") for n in (7, 8, 61, 150)]
    assert counts(pipeline, batch) == {"accepted": items - 4, "dead_lettered": 4}
    assert set(executions(pipeline.simulator).values()) == {1}
    assert executions(pipeline.simulator).total() == items - 4
    no_wrong_value(pipeline, batch)


@pytest.mark.parametrize("job", OPENAI_SIZES, indirect=True)
def test_an_error_object_in_the_place_of_a_result_file_costs_no_answer(job: tuple[Pipeline, int]) -> None:
    pipeline, items = job
    set_faults(
        pipeline.simulator, call={"route": "GET /v1/files/{file_id}/content", "status": 200, "code": "busy", "times": 5}
    )
    batch = all_accepted(pipeline, items)
    assert len(fault_log(pipeline.simulator, "call")) == 5
    paid_as_forced(pipeline.simulator, items)
    no_wrong_value(pipeline, batch)
