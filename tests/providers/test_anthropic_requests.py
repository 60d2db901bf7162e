"""Requests for Anthropic's Messages API: their bodies, the schema in them, and the create call that carries them."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from dev.practice_provider.vendors.anthropic.schema_subset import complaint
from nightmill.domain.errors import ConfigError
from nightmill.jobs.output.strict_schema import strict_schema
from nightmill.providers.anthropic.batch_body import BatchBody
from nightmill.providers.anthropic.envelope import wrap
from nightmill.providers.anthropic.token_factors import token_factor
from nightmill.providers.connection import RequestSpec
from nightmill.providers.dialects.anthropic_messages import AnthropicMessages
from nightmill.providers.dialects.anthropic_schema import fitted

SCHEMA = {
    "type": "object",
    "properties": {"age": {"type": "integer", "description": "In years", "minimum": 0, "maximum": 150}},
    "required": ["age"],
    "additionalProperties": False,
}


def body(messages: list[dict[str, str]], max_output: int | None = None, **spec: Any) -> dict[str, Any]:
    asked = RequestSpec("claude", "chat", **{"max_output_tokens": 10, **spec})
    return dict(json.loads(AnthropicMessages(asked).encode(messages, max_output)))


def test_system_messages_stand_where_the_api_wants_them() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello \u2028"},
        {"role": "system", "content": "Be kind."},
    ]
    assert body(messages) == {
        "model": "claude",
        "max_tokens": 10,
        "system": "Be brief.\n\nBe kind.",
        "messages": [{"role": "user", "content": "Hello \u2028"}],
    }
    assert body(messages[:1])["messages"] == [{"role": "user", "content": "Be brief."}]


def test_a_limit_is_demanded_and_can_be_another_one_for_one_request() -> None:
    assert body([{"role": "user", "content": "x"}], 99)["max_tokens"] == 99
    parameters = {"max_tokens": 7}
    assert body([{"role": "user", "content": "x"}], max_output_tokens=None, parameters=parameters)["max_tokens"] == 7
    with pytest.raises(ConfigError, match="limit"):
        AnthropicMessages(RequestSpec("claude", "chat"))


@pytest.mark.parametrize("parameters", [{"temperature": 0}, {"top_p": 1}, {"stream": True}, {"thinking": float("nan")}])
def test_parameters_that_no_request_can_carry_are_refused_before_anything_is_sent(parameters: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        body([{"role": "user", "content": "x"}], parameters=parameters)


def test_beta_names_belong_to_the_call_and_effort_stands_beside_the_format() -> None:
    parameters = {"betas": ["output-300k-2026-03-24"], "output_config": {"effort": "low"}}
    made = body([{"role": "user", "content": "x"}], parameters=parameters, response_schema=SCHEMA)
    assert "betas" not in made
    assert made["output_config"]["effort"] == "low"
    assert made["output_config"]["format"]["type"] == "json_schema"


def test_what_the_schema_cannot_say_goes_into_the_description() -> None:
    written = fitted(SCHEMA)
    assert written is not None
    assert written["properties"]["age"] == {"type": "integer", "description": "In years (minimum 0, maximum 150)"}
    assert complaint(written) is None


@pytest.mark.parametrize(
    "node",
    [
        {"type": "string", "pattern": "^a", "maxLength": 3},
        {"type": "string", "format": "binary"},
        {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}, "minItems": 3, "maxItems": 5},
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
        {"oneOf": [{"type": "integer", "multipleOf": 2}, {"type": "null"}]},
        {"type": ["string", "null"], "enum": ["a", None]},
        {"const": 5},
        {"type": "object", "properties": {"x": {"type": "string"}}},
    ],
)
def test_every_schema_is_fitted_into_what_the_provider_takes(node: dict[str, Any]) -> None:
    written = fitted({"type": "object", "properties": {"field": node}, "required": ["field"]})
    assert written is not None
    assert complaint(written) is None
    assert written["required"] == ["field"]


def test_a_property_may_be_called_as_a_keyword_is() -> None:
    names = ["minimum", "pattern", "items", "type", "enum", "properties", "description"]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}
    written = fitted(schema)
    assert written is not None
    assert list(written["properties"]) == names


def test_output_models_of_jobs_are_fitted() -> None:
    from typing import Annotated, Literal

    from pydantic import BaseModel, Field

    class Part(BaseModel):
        name: str = Field(min_length=1, max_length=20, pattern="^[a-z]+$")
        share: float = Field(ge=0, le=1)

    class Output(BaseModel):
        kind: Literal["a", "b"] | None
        parts: Annotated[list[Part], Field(min_length=2, max_length=9)]

    written = fitted(strict_schema(Output))
    assert written is not None
    assert complaint(written) is None
    assert "maximum 1" in json.dumps(written)


def unions(count: int) -> dict[str, Any]:
    node = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    return {
        "type": "object",
        "properties": {f"f{n}": node for n in range(count)},
        "required": [f"f{n}" for n in range(count)],
    }


def optionals(count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"f{n}": {"type": "string"} for n in range(count)}}


RECURSIVE = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/Tree"}},
    "$defs": {"Tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}}}},
}


@pytest.mark.parametrize(
    ("schema", "is_taken"),
    [(unions(16), True), (unions(17), False), (optionals(24), True), (optionals(25), False), (RECURSIVE, False)],
)
def test_a_schema_beyond_the_limits_is_asked_for_in_the_prompt(schema: dict[str, Any], is_taken: bool) -> None:
    dialect = AnthropicMessages(RequestSpec("claude", "chat", response_schema=schema, max_output_tokens=5))
    assert dialect.takes_schema is is_taken
    assert ("output_config" in json.loads(dialect.encode([{"role": "user", "content": "x"}]))) is is_taken


def test_the_create_call_is_the_request_file_as_an_array_and_says_its_length(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    lines = [wrap(f"t-0-{n}", json.dumps({"text": f"a\nb \u2028 {n}"}, ensure_ascii=False).encode()) for n in range(3)]
    path.write_bytes(b"".join(lines))
    written = b"".join(BatchBody(path))
    assert len(written) == BatchBody(path).size
    assert [one["custom_id"] for one in json.loads(written)["requests"]] == ["t-0-0", "t-0-1", "t-0-2"]
    assert b"".join(BatchBody(path)) == written  # a second look at it is the same


def test_a_file_of_64_mb_is_written_out_with_4_mb_of_memory(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    line = wrap("t-0-1", json.dumps({"text": "x" * 10_000}).encode())
    with path.open("wb") as sink:
        while sink.tell() < 64 << 20:
            sink.write(line * 100)
    tracemalloc.start()
    try:
        size = sum(map(len, BatchBody(path)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size == BatchBody(path).size
    assert peak < 4 << 20


@pytest.mark.parametrize(
    ("model", "factor"),
    [("claude-opus-4-20250514", 1.3), ("claude-sonnet-4-6", 1.3), ("claude-opus-4-7", 1.6), ("claude-fable-5-1", 1.6)],
)
def test_later_models_count_more_tokens_of_the_same_text(model: str, factor: float) -> None:
    assert token_factor(model) == factor
