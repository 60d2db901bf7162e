"""Result lines of embedding batches, from OpenAI and from nearly compatible servers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from providers.openai_talk import said_in, used

from nightmill.providers.answers import Answer, Failed, Usage, Vector
from nightmill.providers.dialects.careful_replies import PROTOCOL_ERROR

VECTOR = [0.25, -1.0, 3]


def good(data: Any = None, **body: Any) -> dict[str, Any]:
    data = [{"object": "embedding", "index": 0, "embedding": VECTOR}] if data is None else data
    usage = {"prompt_tokens": 5, "total_tokens": 5}
    body = {"object": "list", "data": data, "model": "m-2025", "usage": usage, **body}
    response = {"status_code": 200, "request_id": "q", "body": body}
    return {"id": "x", "custom_id": "r-1", "response": response, "error": None}


def read_one(line: object, *, vectors: bool = True) -> object:
    raw = line if isinstance(line, bytes) else json.dumps(line).encode()
    return said_in(raw, vectors=vectors)


def test_a_vector_is_read_and_used_no_completion_tokens() -> None:
    assert read_one(good()) == Vector([0.25, -1.0, 3.0], "m-2025", used(5, 0))


def test_more_tokens_than_any_request_has_are_no_count() -> None:
    found = read_one(good(usage={"prompt_tokens": 2**31}))
    assert found == Vector(VECTOR, "m-2025", Usage(odd={"prompt_tokens": 2**31}))


def test_a_body_that_is_a_json_string_is_read() -> None:
    line = good()
    line["response"]["body"] = json.dumps(line["response"]["body"])
    assert read_one(line) == Vector(VECTOR, "m-2025", used(5, 0))


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "5"}])
def test_usage_that_is_not_said_is_unknown_and_not_zero(usage: object) -> None:
    assert read_one(good(usage=usage)) == Vector(VECTOR, "m-2025", Usage())


@pytest.mark.parametrize("odd", ["NaN", "-Infinity", "null", '"0.5"', "true", "1" + "0" * 400, "1e999", "-1e999"])
def test_what_is_no_number_stands_as_none_among_the_numbers(odd: str) -> None:
    raw = json.dumps(good()).replace("0.25", odd).encode()
    found = read_one(raw)
    assert isinstance(found, Vector)
    assert found.vector == [None, -1.0, 3.0]
    assert found.usage == used(5, 0)


@pytest.mark.parametrize(
    "data",
    [
        [],
        {},
        [{"index": 0, "embedding": []}],
        [{"index": 0, "embedding": "AACAPg=="}],
        [{"index": 0}],
        [{"index": 0, "embedding": VECTOR}, {"index": 1, "embedding": VECTOR}],
    ],
)
def test_a_line_without_exactly_one_vector_is_a_protocol_error(data: object) -> None:
    found = read_one(good(data))
    assert isinstance(found, Failed)
    assert (found.code, found.usage.prompt) == (PROTOCOL_ERROR, 5)


def test_an_error_line_is_read_as_ever() -> None:
    line = good()
    line["response"] = {"status_code": 400, "body": {"error": {"code": "invalid_value", "message": "no"}}}
    assert read_one(line) == Failed(400, "invalid_value", "no", Usage())


def test_messages_and_vectors_are_not_taken_for_each_other() -> None:
    chat = good(choices=[{"message": {"content": "{}"}, "finish_reason": "stop"}])
    del chat["response"]["body"]["data"]
    found = read_one(chat, vectors=False)
    assert isinstance(found, Answer)
    assert isinstance(read_one(chat), Failed)
    assert isinstance(read_one(good(), vectors=False), Failed)
