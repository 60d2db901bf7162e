"""The vector in a result line of an embeddings batch (API reference, object `list` of `embedding`)."""

from __future__ import annotations

from typing import Literal

import msgspec

from nightmill.providers.cleaning import MOST_MODEL, word
from nightmill.providers.openai_shapes import DocumentedLine
from nightmill.providers.openai_usage import MOST_OF_A_REQUEST
from nightmill.providers.port import Embedding, Usage


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


_read_documented = msgspec.json.Decoder(DocumentedLine[_DocumentedBody]).decode


def documented_vector(line: bytes) -> Embedding | None:
    """The vector of a line that is just as documented, or None."""
    try:
        parsed = _read_documented(line)
    except (ValueError, RecursionError):
        return None
    body = parsed.response.body
    if not body.data[0].embedding or not body.model or not 0 < body.usage.prompt_tokens <= MOST_OF_A_REQUEST:
        return None
    if (body.usage.total_tokens or body.usage.prompt_tokens) != body.usage.prompt_tokens:
        return None
    usage = Usage(body.usage.prompt_tokens, 0)
    return Embedding(parsed.custom_id, body.data[0].embedding, word(body.model, MOST_MODEL), usage)


def vector_in(data: object) -> list[float | None] | None:
    """The only vector of a body's `data`, with None for what is no number; None when there is not just one."""
    if not isinstance(data, list) or len(data) != 1 or not isinstance(data[0], dict):
        return None
    vector = data[0].get("embedding")
    return [_number(value) for value in vector] if isinstance(vector, list) and vector else None


def counted(usage: Usage) -> Usage:
    """Usage of a request that has no completion: where the provider tells what it counted, that is zero."""
    if usage.prompt_tokens is None or usage.completion_tokens is not None:
        return usage
    return msgspec.structs.replace(usage, completion_tokens=0)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer beyond every double
        return None
