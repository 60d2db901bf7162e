from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import openai
import pytest

from dev.practice_provider.models.schema_fill import fill
from practice_provider.client import Client, chat_line
from practice_provider.conftest import StartSimulator

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "open": {"type": "boolean"},
        "kind": {"enum": ["a", "b"]},
        "note": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
        "at_least_one": {"type": "array", "items": {"$ref": "#/$defs/Part"}, "minItems": 1},
        "on": {"type": ["string", "null"], "format": "date"},
    },
    "required": ["name", "count", "share", "open", "kind", "note", "parts", "at_least_one", "on"],
    "additionalProperties": False,
    "$defs": {
        "Part": {"type": "object", "properties": {"title": {"type": "string", "minLength": 3}}, "required": ["title"]}
    },
}


def ask(client: Client, text: str, model: str = "echo-1", **more: Any) -> Any:
    messages: Any = [{"role": "system", "content": "be brief"}, {"role": "user", "content": text}]
    return client.sdk.chat.completions.create(model=model, messages=messages, **more).choices[0]


def test_the_echo_answers_in_the_schema_of_the_request(fast: Client) -> None:
    response_format = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}}
    choice = ask(fast, "one two three four five six seven eight nine ten", response_format=response_format)
    answer = json.loads(choice.message.content)
    jsonschema.validate(answer, SCHEMA)
    assert answer["name"] == "one two three four five six seven eight"
    assert (answer["parts"], answer["open"], answer["kind"]) == ([], False, "a")
    assert choice.finish_reason == "stop"


@pytest.mark.parametrize("words", ["", "x", "two words"])
def test_a_filled_schema_always_validates(words: str) -> None:
    jsonschema.validate(fill(SCHEMA, words), SCHEMA)


def test_a_recursive_schema_ends() -> None:
    node = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}}
    fill({"$ref": "#/$defs/Node", "$defs": {"Node": node}}, "x")


def test_an_answer_over_max_tokens_is_cut_and_says_so(fast: Client) -> None:
    choice = ask(fast, "word " * 100, max_completion_tokens=5)
    assert (choice.finish_reason, len(choice.message.content)) == ("length", 20)


def test_tokens_are_counted_exactly(start: StartSimulator) -> None:
    client = start(count_tokens="exact")
    text = "合同的条款 and <|endoftext|> " * 10
    usage = client.sdk.chat.completions.create(model="echo-1", messages=[{"role": "user", "content": text}]).usage
    assert usage is not None
    assert usage.prompt_tokens == usage.completion_tokens + 7
    assert client.books()["usage"] == {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }


def test_gold_answers_are_replayed_by_the_longest_match(start: StartSimulator, tmp_path: Path) -> None:
    records = [
        {"match": "doc-1", "answer": {"n": 1}},
        {"match": "doc-12", "answer": {"n": 12}},
        {"match": "doc-3", "refusal": "I cannot help with that."},
    ]
    gold = tmp_path / "gold.jsonl"
    gold.write_text("".join(json.dumps(record) + "\n" for record in records))
    client = start(gold_path=gold)
    assert json.loads(ask(client, "read doc-12 now", "gold-1").message.content) == {"n": 12}
    assert json.loads(ask(client, "read doc-1 now", "gold-1").message.content) == {"n": 1}
    refused = ask(client, "read doc-3 now", "gold-1").message
    assert (refused.content, refused.refusal) == (None, "I cannot help with that.")
    with pytest.raises(openai.BadRequestError) as unknown:
        ask(client, "something else", "gold-1")
    assert unknown.value.code == "gold_not_found"


def test_an_upstream_server_answers_behind_the_batch_api(start: StartSimulator) -> None:
    upstream = start()
    client = start(upstream_url=upstream.base_url)
    batch = client.run([chat_line("a", "handed on", model="upstream/echo-1"), chat_line("b", model="upstream/echo-1")])
    lines = {line["custom_id"]: line["response"]["body"] for line in client.result_lines(batch.output_file_id)}
    assert lines["a"]["choices"][0]["message"]["content"] == "handed on"
    assert lines["a"]["usage"]["total_tokens"] > 0
    assert upstream.books()["executed"] == client.books()["executed"] == 2
    failed = client.run([chat_line("c", model="upstream/none")])
    [line] = client.result_lines(failed.error_file_id)
    assert line["response"]["body"]["error"]["code"] == "model_not_found"


def test_an_upstream_that_is_away_fails_the_line_only(start: StartSimulator) -> None:
    client = start(upstream_url="http://127.0.0.1:9/v1")
    batch = client.run([chat_line("a", model="upstream/any")])
    [line] = client.result_lines(batch.error_file_id)
    assert line["response"]["status_code"] == 503


def test_embeddings_are_unit_vectors_that_depend_on_the_input_only(fast: Client) -> None:
    first = fast.sdk.embeddings.create(model="embed-1", input=["one", "two"], dimensions=64)
    again = fast.sdk.embeddings.create(model="embed-1", input="one", dimensions=64, encoding_format="float")
    one, two = (entry.embedding for entry in first.data)
    assert math.isclose(math.hypot(*one), 1, rel_tol=1e-5)
    assert one == pytest.approx(again.data[0].embedding, rel=1e-6)
    assert one != two
    assert len(fast.sdk.embeddings.create(model="embed-1", input="x").data[0].embedding) == 1536


def test_word_vectors_of_texts_about_the_same_lie_close_together(fast: Client) -> None:
    texts = ["Which licence does this software have?", "software license terms", "a recipe for lentil soup"]
    answer = fast.sdk.embeddings.create(model="wordllama-1", input=texts, encoding_format="float")
    question, near, far = (entry.embedding for entry in answer.data)
    assert len(question) == 256
    assert math.isclose(math.hypot(*question), 1, rel_tol=1e-6)
    assert _alike(question, near) > 0.3 > _alike(question, far)
    assert answer.usage.prompt_tokens > 10
    short = fast.sdk.embeddings.create(model="wordllama-1", input="x", dimensions=64, encoding_format="float")
    assert len(short.data[0].embedding) == 64


def _alike(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("refused", [{"input": "x", "dimensions": 100}, {"input": " "}, {"input": [[1, 2]]}])
def test_word_vectors_refuse_what_they_cannot_embed(fast: Client, refused: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        fast.sdk.embeddings.create(model="wordllama-1", **refused)
    assert caught.value.code == "invalid_value"


def test_models_are_listed_and_unknown_ones_refused(fast: Client) -> None:
    names = [model.id for model in fast.sdk.models.list()]
    assert {"echo-1", "embed-1", "requirement-reader-1", "wordllama-1"} <= set(names)
    assert fast.sdk.models.retrieve("echo-1").id == "echo-1"
    with pytest.raises(openai.NotFoundError) as unknown:
        ask(fast, "x", "gpt-none")
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError):
        fast.sdk.models.retrieve("gpt-none")
