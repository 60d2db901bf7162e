"""What result lines of message batches say, odd ones too."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nightmill.domain.classification import classify_line_error, never_processed
from nightmill.domain.endings import Ending
from nightmill.providers.answers import Answer, Failed, Said, Unreadable, Usage
from nightmill.providers.anthropic.envelope import unwrap
from nightmill.providers.connection import RequestSpec
from nightmill.providers.dialects.anthropic_messages import AnthropicMessages

DIALECT = AnthropicMessages(RequestSpec("claude", "chat", max_output_tokens=10))
USAGE = {"input_tokens": 10, "output_tokens": 5}
TEXT = {"type": "text", "text": '{"a": 1}'}


def line(result: dict[str, Any]) -> bytes:
    return json.dumps({"custom_id": "t-0-1", "result": result}).encode()


def message(**changed: Any) -> dict[str, Any]:
    made = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": [TEXT]}
    return made | {"stop_reason": "end_turn", "usage": USAGE} | changed


def said(raw: bytes) -> Said | Unreadable:
    found = unwrap(raw)
    if isinstance(found, Unreadable):
        return found
    assert found[0] == "t-0-1"
    return DIALECT.read(found[1])


def answer(**changed: Any) -> Answer:
    found = said(line({"type": "succeeded", "message": message(**changed)}))
    assert isinstance(found, Answer)
    return found


def failed(result: dict[str, Any]) -> Failed:
    found = said(line(result))
    assert isinstance(found, Failed)
    return found


def test_text_may_stand_in_several_blocks_and_behind_thinking() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "x"}
    blocks = [thinking, {"type": "text", "text": '{"a"'}, {"type": "hologram"}, {"type": "text", "text": ": 1}"}]
    assert answer(content=blocks).text == '{"a": 1}'
    assert answer(content=[thinking, TEXT]).text == '{"a": 1}'
    assert answer(content=[{"type": "redacted_thinking", "data": "x"}, TEXT]).text == '{"a": 1}'
    assert (answer(content=[thinking]).text, answer(content=[thinking]).instead) == (None, "reasoning")
    assert answer(content=[{"type": "tool_use", "input": {}}], stop_reason="tool_use").instead == "tool_calls"
    assert answer(content=[]).text is None


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        ("end_turn", Ending.FINISHED),
        ("stop_sequence", Ending.FINISHED),
        ("max_tokens", Ending.TRUNCATED),
        ("model_context_window_exceeded", Ending.TRUNCATED),
        ("pause_turn", Ending.FAILED),
        ("tool_use", Ending.TOOLS),
        ("refusal", Ending.REFUSED),
        ("hit_the_wall", Ending.UNKNOWN),
        (None, Ending.UNKNOWN),
    ],
)
def test_each_stop_reason_has_its_ending(reason: str | None, ending: Ending) -> None:
    found = answer(stop_reason=reason)
    assert (found.ending, found.finish_reason) == (ending, reason)
    assert found.refusal is (reason == "refusal")


def test_a_refusal_is_an_answer_that_is_paid_and_has_no_text() -> None:
    found = answer(stop_reason="refusal", stop_details={"type": "refusal", "category": "x"}, content=[])
    assert (found.refusal, found.text, found.usage.prompt, found.usage.output) == (True, None, 10, 5)


def test_input_tokens_leave_out_the_cache_and_thinking_is_part_of_the_output() -> None:
    cached = {
        "input_tokens": 10,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 4},
        "service_tier": "batch",
    }
    usage = answer(usage=cached).usage
    assert usage == Usage(uncached=10, output=7, cache_read=200, cache_write=30, reasoning=4)
    assert usage.prompt == 240
    slow = answer(usage=cached, content=[{"type": "hologram"}, TEXT]).usage  # read with more care
    assert slow == usage
    all_cached = answer(usage=cached | {"input_tokens": 0}).usage
    assert (all_cached.uncached, all_cached.prompt) == (0, 230)


@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": 10, "output_tokens": 5, "output_tokens_details": {"thinking_tokens": 6}},
        {"input_tokens": -1, "output_tokens": 5},
        {"input_tokens": 10, "output_tokens": 10**12},
        {"input_tokens": 0, "output_tokens": 5},
    ],
)
def test_usage_that_cannot_be_is_kept_and_not_counted(usage: dict[str, Any]) -> None:
    found = answer(usage=usage)
    assert found.text == '{"a": 1}'
    assert (found.usage.prompt, found.usage.output) == (None, None)
    assert found.usage.odd


@pytest.mark.parametrize(
    ("kind", "failure", "costs_nothing"),
    [
        ("invalid_request_error", "input", True),
        ("not_found_error", "input", True),
        ("permission_error", "input", True),
        ("billing_error", "capacity", True),
        ("rate_limit_error", "transient", True),
        ("timeout_error", "transient", False),
        ("api_error", "transient", False),
        ("overloaded_error", "transient", False),
    ],
)
def test_an_error_lies_one_level_deeper_and_its_type_says_what_to_do(
    kind: str, failure: str, costs_nothing: bool
) -> None:
    inner = {"type": kind, "message": "No."}
    documented = failed({"type": "errored", "error": {"type": "error", "error": inner, "request_id": "req_1"}})
    flat = failed({"type": "errored", "error": inner})
    for one in (documented, flat):
        assert (one.status, one.code, one.type) == (0, kind, kind)
        assert classify_line_error(one.status, one.code, one.message, one.type).kind == failure
        assert never_processed(one.status, one.code, one.message, one.type) is costs_nothing
        assert (one.usage.prompt, one.usage.output) == (0, 0)  # only succeeded lines are billed


@pytest.mark.parametrize(("kind", "code"), [("canceled", "batch_cancelled"), ("expired", "batch_expired")])
def test_what_was_not_executed_says_so(kind: str, code: str) -> None:
    found = failed({"type": kind})
    assert found.code == code
    assert never_processed(found.status, found.code, found.message)


def test_a_result_of_an_unknown_type_is_no_answer() -> None:
    assert failed({"type": "suspended", "message": message()}).code == "provider_protocol_error"
    assert isinstance(said(b'{"custom_id": "t-0-1"}'), Failed)


def test_an_error_beside_or_in_an_answer() -> None:
    nulls = {"type": "error", "error": {"type": None, "message": None}}
    both = said(line({"type": "succeeded", "message": message(), "error": nulls}))
    assert isinstance(both, Answer)
    inside = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    assert failed({"type": "succeeded", "message": inside}).code == "overloaded_error"
    assert failed({"type": "succeeded", "message": {"messages": []}}).code == "provider_protocol_error"


@pytest.mark.parametrize(
    "raw",
    [
        b'{"custom_id": "t-0-1", "result": {"type": "succ',
        b"[]",
        b'{"result": {}}',
        b"<html>",
        b"[" * 100_000,
        b'{"custom_id": 5}',
    ],
)
def test_what_is_no_result_line_is_a_value(raw: bytes) -> None:
    assert isinstance(said(raw), Unreadable)


def test_text_that_is_not_clean_unicode_is_read_and_marked() -> None:
    raw = line({"type": "succeeded", "message": message(content=[{"type": "text", "text": "MARK"}])})
    found = said(raw.replace(b"MARK", rb"a\ud83d"))
    assert isinstance(found, Answer)
    assert found.text == "a\ufffd"
    found = said(raw.replace(b"MARK", b"a\xff\xe2\x80\xa8"))
    assert isinstance(found, Answer)
    assert found.text == "a\ufffd\u2028"
    assert answer(usage={"input_tokens": 10, "output_tokens": 5, "x": 1e400}).text == '{"a": 1}'
