"""What the lines of one request come to, however many there are and wherever they stand."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from providers.scripted_server import Request
from support.odd_provider import changed_by
from support.pipeline import Pipeline
from support.steps import counts, one_shard, paid_once

from nightmill.providers.answers import Answer, Failed, Said, Usage, Vector
from nightmill.providers.endings import ending
from nightmill.stages.run_shard.one_answer import one_of

USED, OTHER, NONE = Usage(10, 2), Usage(11, 2), Usage()


def answer(text: str | None, usage: Usage = USED, finish: str | None = "stop") -> Answer:
    return Answer(text, False, ending(finish), finish, "m", usage)


def error(code: str = "server_error", status: int = 500) -> Failed:
    return Failed(status, code, "it failed", NONE)


@pytest.mark.parametrize(
    ("lines", "counts"),
    [
        ([answer("a"), error()], "a"),
        ([answer("a"), error("context_length_exceeded", 400)], "a"),
        ([answer("a"), answer(None)], "a"),
        ([answer("a"), answer("a", OTHER)], "a"),
        ([answer("a"), answer("a", NONE)], "a"),
        ([answer("a"), answer("a", finish=None)], "a"),
        ([answer("a"), answer("a", finish="eos_token")], "a"),
        ([answer("a"), answer("half", finish="error")], "a"),
        ([answer("a"), answer("b")], None),
        ([answer("a"), answer("b"), answer("c")], None),
        ([answer("a"), answer("b"), error()], None),
        ([answer("a"), answer("b"), answer("a")], None),
        ([Vector([1.0, 2.0], "m", USED), Vector([1.0, 3.0], "m", USED)], None),
    ],
)
def test_an_answer_wins_over_an_error_and_answers_that_differ_are_none_in_whatever_order_they_come(
    lines: list[Said], counts: str | None
) -> None:
    for order in permutations(lines):
        found = one_of(order)
        assert found.conflicting is (counts is None)
        if counts is None:
            assert isinstance(found.line, Failed)
            assert found.line.code == "conflicting_lines"
        else:
            assert isinstance(found.line, Answer)
            assert found.line.text == counts


def test_the_same_answer_twice_with_other_usage_is_a_repetition_with_usage_that_can_be_believed() -> None:
    found = one_of([answer("a", NONE), answer("a", OTHER), answer("a", USED)])
    assert found.line == answer("a", OTHER)
    vector = Vector([1.0, 2.0], "m", NONE)
    assert one_of([vector, Vector([1.0, 2.0], "m", USED)]).line.usage == USED


def test_of_errors_the_one_that_says_why_counts() -> None:
    silent = Failed(0, "provider_unknown", "", NONE)
    assert one_of([silent, error("bad", 400)]).line == error("bad", 400)


def test_three_different_answers_in_one_file_are_none_and_stay_none(pipeline: Pipeline) -> None:
    def change(request: Request, body: bytes) -> bytes:
        if not request.target.endswith("/content"):
            return body
        lines = body.splitlines(keepends=True)
        line = next((one for one in lines if b'-3"' in one), b"")
        return b"".join(lines) + b"".join(line.replace(b'pages\\":', b'pages\\":%d' % n) for n in (1, 2))

    batch, shard = one_shard(pipeline)
    with changed_by(pipeline, change):
        pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 19, "dead_lettered": 1}
    assert pipeline.sql("select ordinal, class, code, attempts from nightmill.dead_letter") == [
        (3, "transient", "conflicting_lines", 3)
    ]


@pytest.mark.parametrize("later", [False, True], ids=["in the other file", "in a later look"])
def test_a_result_line_wins_over_an_error_line_in_whatever_file_or_look(pipeline: Pipeline, later: bool) -> None:
    """The output file's first look has an error in place of one answer and lacks another line; or the answer stands in
    the error file."""
    looks: list[str] = []

    def change(request: Request, body: bytes) -> bytes:
        if not request.target.endswith("/content") or "file-o" not in request.target:
            return body
        looks.append(request.target)
        if later and len(looks) > 1:
            return body
        lines = body.splitlines(keepends=True)
        failed = [_failed(one) if json.loads(one)["custom_id"].endswith("-3") else one for one in lines]
        return b"".join(failed[:-1]) if later else b"".join([*failed, *lines[:4]])

    batch, shard = one_shard(pipeline)
    with changed_by(pipeline, change):
        pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    assert len(looks) == (2 if later else 1)
    assert pipeline.sql("select count(*) from nightmill.attempt where class is not null") == [(0,)]
    paid_once(pipeline, 20)


def _failed(line: bytes) -> bytes:
    told: dict[str, Any] = json.loads(line)
    told |= {"response": None, "error": {"code": "server_error", "message": "it failed"}}
    return json.dumps(told).encode() + b"\n"
