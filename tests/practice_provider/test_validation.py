from __future__ import annotations

from typing import Any

import pytest

from practice_provider.client import Client, chat_line, chat_lines, jsonl
from practice_provider.conftest import StartSimulator


def problems(client: Client, lines: Any) -> list[tuple[str | None, int | None, str | None]]:
    batch = client.run(lines)
    assert batch.status == "failed"
    assert batch.failed_at is not None
    assert (batch.output_file_id, batch.error_file_id) == (None, None)
    assert batch.errors is not None
    assert client.books()["executed"] == 0
    return [(one.code, one.line, one.param) for one in batch.errors.data or []]


def test_create_answers_validating_although_the_file_is_bad(fast: Client) -> None:
    assert fast.submit(b"nonsense\n").status == "validating"


def test_a_line_that_is_not_json_is_named(fast: Client) -> None:
    data = jsonl(chat_lines(2)) + b"{nonsense\n" + jsonl([chat_line("c")])
    assert problems(fast, data) == [("invalid_json_line", 3, None)]


def test_a_blank_line_is_not_json(fast: Client) -> None:
    assert problems(fast, jsonl([chat_line("a")]) + b"\n" + jsonl([chat_line("b")])) == [("invalid_json_line", 2, None)]


@pytest.mark.parametrize("name", ["custom_id", "method", "url", "body"])
def test_a_line_without_a_field_is_named(fast: Client, name: str) -> None:
    broken = chat_line("b")
    del broken[name]
    assert problems(fast, [chat_line("a"), broken]) == [("missing_required_parameter", 2, name)]


def test_a_repeated_custom_id_is_named(fast: Client) -> None:
    lines = [chat_line("a"), chat_line("b"), chat_line("a")]
    assert problems(fast, lines) == [("duplicate_custom_id", 3, "custom_id")]


def test_a_second_model_is_named(fast: Client) -> None:
    lines = [chat_line("a"), chat_line("b", model="echo-2")]
    assert problems(fast, lines) == [("model_mismatch", 2, "body.model")]


def test_an_unknown_model_fails_the_batch(fast: Client) -> None:
    assert problems(fast, [chat_line("a", model="gpt-none")]) == [("model_not_found", 1, "body.model")]


def test_a_url_of_another_endpoint_is_named(fast: Client) -> None:
    lines = [chat_line("a"), chat_line("b") | {"url": "/v1/embeddings"}]
    assert problems(fast, lines) == [("invalid_url", 2, "url")]


def test_an_empty_file_fails_the_batch(fast: Client) -> None:
    assert problems(fast, b"") == [("empty_file", None, None)]


def test_too_many_requests_fail_the_batch(start: StartSimulator) -> None:
    client = start(requests_per_file=3)
    assert client.run(chat_lines(3)).status == "completed"
    second = client.run(chat_lines(4))
    assert second.errors is not None
    assert [(one.code, one.line) for one in second.errors.data or []] == [("too_many_tasks", None)]


def test_too_many_embedding_inputs_fail_the_batch(start: StartSimulator) -> None:
    client = start(embedding_inputs_per_batch=3)
    body = {"model": "embed-1", "input": ["one", "two", "three", "four"]}
    lines = [{"custom_id": "a", "method": "POST", "url": "/v1/embeddings", "body": body}]
    batch = client.run(lines, "/v1/embeddings")
    assert batch.errors is not None
    assert [one.code for one in batch.errors.data or []] == ["too_many_tasks"]


def test_the_enqueued_prompt_tokens_of_a_model_are_limited_over_all_unfinished_batches(start: StartSimulator) -> None:
    client = start(enqueued_tokens=120)
    client.faults(hold=True)
    lines = [chat_line("a", "x" * 4 * 90)]
    first = client.submit(lines)
    client.wait(first.id, "in_progress")
    second = client.run(lines)
    assert second.status == "failed"
    assert second.errors is not None
    [one] = second.errors.data or []
    assert (one.code, one.line) == ("token_limit_exceeded", None)
    assert "120" in (one.message or "")
    other_model = client.submit([chat_line("a", "x" * 4 * 90, model="echo-2")])
    client.wait(other_model.id, "in_progress")
    client.faults(hold=False)
    assert client.wait(first.id).status == "completed"
    assert client.run(lines).status == "completed"
