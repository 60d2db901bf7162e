"""What a Messages request may ask, and the shape of its answer: in batches and in plain calls."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest

from practice_provider.anthropic_client import AnthropicClient, request
from practice_provider.conftest import StartAnthropic

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "pages": {"type": "integer"}},
    "required": ["title", "pages"],
    "additionalProperties": False,
}
FORMAT = {"format": {"type": "json_schema", "schema": SCHEMA}}
TOOL = {"name": "answer", "description": "d", "input_schema": SCHEMA}


def message(client: AnthropicClient, text: str = "some text", **params: Any) -> dict[str, Any]:
    result = client.answer(request("one", text, **params))
    assert result["type"] == "succeeded", result
    said: dict[str, Any] = result["message"]
    return said


def error(client: AnthropicClient, **params: Any) -> dict[str, str]:
    result = client.answer(request("one", **params))
    assert result["type"] == "errored", result
    found: dict[str, str] = result["error"]["error"]
    return found


def test_a_schema_is_honoured(claude: AnthropicClient) -> None:
    said = message(claude, "a short text", output_config=FORMAT)
    assert json.loads(said["content"][0]["text"]) == {"title": "a short text", "pages": 0}
    assert said["stop_reason"] == "end_turn"


@pytest.mark.parametrize("choice", [{"type": "tool", "name": "answer"}, {"type": "any"}])
def test_a_demanded_tool_is_called_with_arguments_of_its_schema(
    claude: AnthropicClient, choice: dict[str, str]
) -> None:
    said = message(claude, "a short text", tools=[TOOL], tool_choice=choice)
    [block] = said["content"]
    assert (block["type"], block["name"], block["input"]) == (
        "tool_use",
        "answer",
        {"title": "a short text", "pages": 0},
    )
    assert said["stop_reason"] == "tool_use"


def test_thinking_stands_before_the_text_and_is_part_of_the_output(claude: AnthropicClient) -> None:
    plain, thoughtful = message(claude), message(claude, thinking={"type": "adaptive"})
    assert [block["type"] for block in thoughtful["content"]] == ["thinking", "text"]
    thought = thoughtful["usage"]["output_tokens_details"]["thinking_tokens"]
    assert thoughtful["usage"]["output_tokens"] == plain["usage"]["output_tokens"] + thought
    assert thought > 0


def test_an_answer_stops_at_its_limit_or_at_a_sequence(claude: AnthropicClient) -> None:
    long = message(claude, "one two three four five six seven eight nine ten", max_tokens=3)
    assert long["stop_reason"] == "max_tokens"
    assert long["usage"]["output_tokens"] <= 3
    stopped = message(claude, "one two STOP three", stop_sequences=["STOP"])
    assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("stop_sequence", "STOP")
    assert stopped["content"][0]["text"] == "one two "


def test_a_refusal_is_a_succeeded_and_paid_line(start_anthropic: StartAnthropic, tmp_path: Any) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_text(json.dumps({"match": "harm", "answer": None, "refusal": "I cannot help with that."}))
    client = start_anthropic(gold_path=gold)
    said = message(client, "do harm", model="gold-1")
    assert (said["content"], said["stop_reason"]) == ([], "refusal")
    assert said["stop_details"]["type"] == "refusal"
    assert said["stop_details"]["explanation"] == "I cannot help with that."
    assert client.books()["executed"] == 1


def test_cached_tokens_stand_beside_the_input_tokens(claude: AnthropicClient) -> None:
    rules = {"type": "text", "text": "rule " * 2000, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    plain = message(claude, system="rule " * 2000)["usage"]
    seen = set()
    for _ in range(12):
        usage = message(claude, system=[rules])["usage"]
        written, read = usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"]
        assert usage["input_tokens"] + written + read == plain["input_tokens"]
        assert usage["cache_creation"] == {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": written}
        seen.add("read" if read else "written")
    assert seen == {"read", "written"}
    short = message(claude, system=[{**rules, "text": "short"}])["usage"]
    assert short["cache_creation_input_tokens"] == short["cache_read_input_tokens"] == 0


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 64_001}, "maximum"),
        ({"stream": True}, "stream"),
        ({"speed": "fast"}, "speed"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"output_format": {"type": "json_schema", "schema": SCHEMA}}, "output_format"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "role"),
        ({"messages": [{"role": "user", "content": ""}]}, "non-empty"),
        ({"system": [{"type": "text", "text": ""}]}, "system"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1000}}, "budget_tokens"),
        ({"output_config": {"effort": "huge"}}, "effort"),
        ({"output_config": {"format": {"type": "text"}}}, "format"),
        ({"tool_choice": {"type": "tool", "name": "x"}}, "tool_choice"),
        ({"tools": [{"name": "x"}]}, "input_schema"),
        ({"stop_sequences": [" "]}, "stop_sequences"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {"type": "string", "format": []}}}}, "schema"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {**SCHEMA, "required": 5}}}}, "schema"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "x"}}, "tool_choice"),
        ({"model": "echo-2", "temperature": 0}, "temperature"),
        ({"model": "echo-2", "top_p": 0.5}, "top_p"),
    ],
)
def test_parameters_that_are_not_right_are_an_invalid_request(
    claude: AnthropicClient, params: dict[str, Any], said: str
) -> None:
    found = error(claude, **params)
    assert found["type"] == "invalid_request_error"
    assert said in found["message"]


def test_older_models_still_take_a_temperature(claude: AnthropicClient) -> None:
    assert message(claude, temperature=0)["content"][0]["text"] == "some text"


def with_part(**part: Any) -> dict[str, Any]:
    return {**SCHEMA, "properties": {"a": part}, "required": ["a"]}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "object", "properties": {}}, "additionalProperties"),
        (with_part(type="integer", minimum=1), "minimum"),
        (with_part(type="string", maxLength=3), "maxLength"),
        (with_part(type="string", pattern="^a"), "pattern"),
        (with_part(type="string", format="phone"), "phone"),
        (with_part(type="array", items={"type": "string"}, minItems=2), "minItems"),
        (with_part(oneOf=[{"type": "string"}]), "oneOf"),
        ({**SCHEMA, "properties": {f"p{n}": {"type": "string"} for n in range(25)}, "required": []}, "25 optional"),
        (
            {**SCHEMA, "properties": {f"p{n}": {"anyOf": [{"type": "null"}]} for n in range(17)}, "required": []},
            "17 union",
        ),
    ],
)
def test_a_schema_outside_of_the_subset_is_refused_and_names_what(
    claude: AnthropicClient, schema: dict[str, Any], said: str
) -> None:
    found = error(claude, output_config={"format": {"type": "json_schema", "schema": schema}})
    assert found["type"] == "invalid_request_error"
    assert said in found["message"]


def test_the_long_output_header_belongs_to_the_create_call(claude: AnthropicClient) -> None:
    header = {"anthropic-beta": "output-300k-2026-03-24"}
    batch = claude.run([request("one", max_tokens=200_000)], extra_headers=header)
    assert claude.by_id(batch.id)["one"]["type"] == "succeeded"


def test_a_plain_call_answers_and_stands_in_the_books(claude: AnthropicClient) -> None:
    params = request("x", "hello")["params"]
    answer = claude.sdk.messages.create(**params)
    assert [block.text for block in answer.content if block.type == "text"] == ["hello"]
    assert answer.usage.service_tier == "standard"
    assert claude.books()["requests"].keys() == {answer._request_id}
    counted = claude.sdk.messages.count_tokens(model="echo-1", messages=params["messages"])
    assert counted.input_tokens == answer.usage.input_tokens
    with pytest.raises(anthropic.NotFoundError, match="none-1"):
        claude.sdk.messages.create(**{**params, "model": "none-1"})
    with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
        claude.sdk.messages.create(**{**params, "max_tokens": -1})


def test_text_comes_back_whole_in_any_script(claude: AnthropicClient) -> None:
    text = "one\u2028two\u2029three\u0085four\x0bfive\u0000six 第七"
    assert message(claude, text)["content"][0]["text"] == text
