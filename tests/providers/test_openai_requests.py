"""Connections and the request lines that go out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmill.domain.errors import ConfigError, SourceError
from nightmill.providers.connection import ProviderConnection, RequestSpec
from nightmill.providers.dialects.openai_chat import OpenAIChat
from nightmill.providers.dialects.openai_embeddings import OpenAIEmbeddings
from nightmill.providers.openai import CHAT, EMBEDDINGS, ENDPOINTS
from nightmill.providers.openai.envelope import Wrapper
from nightmill.providers.registry import known_adapters, open_provider, open_watcher

SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
names = st.text(alphabet="abcdefgh_", min_size=1, max_size=8)
messages = st.lists(st.fixed_dictionaries({"role": st.sampled_from(["system", "user"]), "content": st.text()}))


def line_of(spec: RequestSpec, custom_id: str, messages) -> bytes:
    dialect = OpenAIEmbeddings(spec) if spec.task == EMBEDDINGS else OpenAIChat(spec)
    return Wrapper(ENDPOINTS[spec.task]).wrap(custom_id, dialect.encode(messages))


@pytest.mark.parametrize(
    ("model", "parameters", "written"),
    [
        ("gpt-5.2", {}, {"max_completion_tokens": 300}),
        ("o4-mini", {}, {"max_completion_tokens": 300}),
        ("ft:gpt-4o-mini:acme::x", {}, {"max_completion_tokens": 300}),
        ("llama-3.3-70b", {}, {"max_tokens": 300}),
        ("gpt-5.2", {"max_tokens": 200}, {"max_tokens": 200}),
    ],
)
def test_the_limit_to_an_answers_tokens_goes_out_under_the_name_that_the_model_takes(model, parameters, written):
    dialect = OpenAIChat(RequestSpec(model, CHAT, parameters, max_output_tokens=300))
    body = json.loads(dialect.encode([]))
    assert {name: body[name] for name in body if name.startswith("max")} == written
    larger = json.loads(dialect.encode([], 600))
    assert {name: larger[name] for name in larger if name.startswith("max")} == dict.fromkeys(written, 600)


@given(
    custom_id=st.text(), messages=messages, parameters=st.dictionaries(names, values, max_size=4), schema=st.booleans()
)
def test_a_request_line_says_what_plain_json_would_say(custom_id, messages, parameters, schema):
    spec = RequestSpec("m-\u00e9", CHAT, parameters=parameters, response_schema=SCHEMA if schema else None)
    line = line_of(spec, custom_id, messages)
    body = {"model": "m-\u00e9", **parameters, "messages": messages}
    if schema:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA},
        }
    assert json.loads(line) == {
        "custom_id": custom_id,
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": body,
    }
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1


@given(custom_id=st.text(), text=st.text())
def test_an_embedding_request_carries_the_text_and_the_parameters_and_nothing_else(custom_id, text):
    spec = RequestSpec("m", task=EMBEDDINGS, parameters={"dimensions": 64})
    line = line_of(spec, custom_id, [{"role": "user", "content": text}])
    body = {"model": "m", "dimensions": 64, "input": text}
    assert json.loads(line) == {"custom_id": custom_id, "method": "POST", "url": "/v1/embeddings", "body": body}
    assert line.count(b"\n") == 1


def test_text_goes_out_as_unescaped_utf8():
    line = line_of(RequestSpec("m", CHAT), "r-1", ({"role": "user", "content": "合同\u2028"},))
    assert "合同\u2028".encode() in line


def test_c71_a_half_surrogate_pair_is_an_error_that_names_the_item_and_not_the_text():
    provider = open_provider("openai", connection(), RequestSpec("m", CHAT))
    with pytest.raises(SourceError, match="r-17") as caught:
        provider.request_line("r-17", [{"role": "user", "content": "CANARY \ud83d"}])
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None
    assert provider.request_line("r-18", []).startswith(b'{"custom_id":"r-18"')
    provider.transport.close()


@pytest.mark.parametrize("parameters", [{"stream": True}, {"model": "x"}, {"messages": []}])
def test_parameters_that_nightmill_writes_itself_are_refused(parameters):
    with pytest.raises(ConfigError, match=next(iter(parameters))):
        OpenAIChat(RequestSpec("m", CHAT, parameters))


def test_c74_parameters_that_are_not_json_are_refused():
    with pytest.raises(ConfigError, match="not JSON"):
        OpenAIChat(RequestSpec("m", CHAT, {"temperature": float("nan")}))


def test_an_endpoint_whose_answers_cannot_be_read_is_refused():
    with pytest.raises(ConfigError, match="videos"):
        open_provider("openai", connection(), RequestSpec("m", "videos"))


def connection(**changes: object) -> ProviderConnection:
    return ProviderConnection(
        **{"conn_id": "llm", "base_url": "https://api.example.com/v1", "api_key": "sk-1", **changes}
    )


def test_c26_a_fingerprint_changes_with_whatever_decides_whose_batches_are_seen():
    base = connection().fingerprint
    assert len(base) == 16
    assert connection(conn_id="renamed", base_url="https://api.example.com/v1/", timeout_s=5).fingerprint == base
    others = [
        connection(**change).fingerprint
        for change in (
            {"api_key": "sk-2"},
            {"scopes": {"project": "p"}},
            {"scopes": {"organization": "p"}},
            {"base_url": "https://b.example.com/v1"},
        )
    ]
    assert len({base, *others}) == 5


def test_a_connection_never_shows_its_key():
    assert "sk-1" not in repr(connection())


@pytest.mark.parametrize(
    "change",
    [
        {"api_key": ""},
        {"api_key": "sk 1"},
        {"api_key": "sk-é"},
        {"base_url": "api.example.com"},
        {"base_url": "https://u:sk-1@x/v1"},
    ],
)
def test_a_connection_that_cannot_work_is_refused_without_showing_its_key(change):
    with pytest.raises(ConfigError, match="llm") as caught:
        connection(**change)
    assert "sk-1" not in str(caught.value)


def test_an_unknown_adapter_is_refused_with_the_known_ones():
    for open_it in (
        lambda: open_provider("opnai", connection(), RequestSpec("m", CHAT)),
        lambda: open_watcher("opnai", connection()),
    ):
        with pytest.raises(ConfigError, match="openai"):
            open_it()
    assert "openai" in known_adapters()
    open_provider("openai", connection(), RequestSpec("m", CHAT)).transport.close()
