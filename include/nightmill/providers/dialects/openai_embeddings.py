"""OpenAI's embeddings (API reference, object `list` of `embedding`), and what other servers make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from nightmill.providers.answers import Failed, Reply, Unreadable, Usage, Vector
from nightmill.providers.cleaning import MOST_MODEL, word
from nightmill.providers.connection import RequestSpec
from nightmill.providers.dialects.careful_replies import read_carefully
from nightmill.providers.dialects.openai_bodies import Body
from nightmill.providers.dialects.openai_requests import BodyEncoder
from nightmill.providers.dialects.usage import MOST_OF_A_REQUEST, read_usage


class _DocumentedEntry(msgspec.Struct, gc=False):
    embedding: list[float]
    index: Literal[0]


class _DocumentedUsage(msgspec.Struct, gc=False):
    prompt_tokens: int
    total_tokens: int | None = None
    prompt_tokens_details: None = None


class _DocumentedBody(msgspec.Struct, gc=False):
    data: tuple[_DocumentedEntry]
    model: str
    usage: _DocumentedUsage
    error: None = None


_read_documented = msgspec.json.Decoder(_DocumentedBody).decode


class OpenAIEmbeddings:
    """The dialect of /v1/embeddings. A request is the text of the only message; there is no answer to limit."""

    takes_schema = False

    def __init__(self, spec: RequestSpec) -> None:
        self._encoder = BodyEncoder(spec, "input")

    def encode(self, messages: Sequence[Mapping[str, str]], max_output: int | None = None) -> bytes:
        """One request body."""
        assert max_output is None, "an embedding has no output tokens"
        (message,) = messages
        return self._encoder.body(message["content"])

    def read(self, reply: Reply) -> Vector | Failed | Unreadable:
        """What one reply says."""
        documented = _documented(reply) if reply.status == 200 and not reply.errors else None
        return documented or read_carefully(reply, Body, _vector)


def _documented(reply: Reply) -> Vector | None:
    try:
        body = _read_documented(reply.body)
    except (ValueError, RecursionError):
        return None
    if not body.data[0].embedding or not body.model or not 0 < body.usage.prompt_tokens <= MOST_OF_A_REQUEST:
        return None
    if (body.usage.total_tokens or body.usage.prompt_tokens) != body.usage.prompt_tokens:
        return None
    usage = Usage(body.usage.prompt_tokens, 0)
    return Vector(body.data[0].embedding, word(body.model, MOST_MODEL), usage, reply.sanitised)


def _vector(body: Body, sanitised: bool) -> Vector | None:
    vector = vector_in(body.data)
    if vector is None:
        return None
    usage = _counted(read_usage(body.usage, answered=True))
    return Vector(vector, word(body.model, MOST_MODEL), usage, sanitised)


def vector_in(data: object) -> list[float | None] | None:
    """The only vector of a body's `data`, with None for what is no number; None when there is not just one."""
    if not isinstance(data, list) or len(data) != 1 or not isinstance(data[0], dict):
        return None
    vector = data[0].get("embedding")
    return [_number(value) for value in vector] if isinstance(vector, list) and vector else None


def _counted(usage: Usage) -> Usage:
    """Usage of a request that has no completion: where the provider tells what it counted, that is zero."""
    if usage.uncached is None or usage.output is not None:
        return usage
    return msgspec.structs.replace(usage, output=0)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer beyond every double
        return None
