"""Token counts as the provider bills them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

Count = Callable[[str], int]


@lru_cache(maxsize=1)
def _exact() -> Count:
    with warnings.catch_warnings():
        # Importing bpe_openai uses a deprecated function of importlib.resources.
        warnings.simplefilter("ignore", DeprecationWarning)
        from bpe_openai import _bindings  # type: ignore[import-untyped]

        # The public get_encoding() builds tables for decoding too, and its encode() refuses a million characters.
        count: Count = _bindings.tokenizer_for_encoding("o200k_base").count
    return count


def _approx(text: str) -> int:
    return (len(text) + 3) // 4


def counter(mode: Literal["exact", "approx"]) -> Count:
    """exact: o200k_base. approx: four characters are a token, which is far off on Chinese; for benchmarks only."""
    return _exact() if mode == "exact" else _approx


def message_text(message: Mapping[str, Any]) -> str:
    """The text of one chat message, whose content is a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return ""


def message_texts(body: Mapping[str, Any]) -> list[str]:
    """The texts of a chat request's messages."""
    messages = body.get("messages")
    return [message_text(one) for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []


def embedding_inputs(body: Mapping[str, Any]) -> list[str | list[int]]:
    """The inputs of an embeddings request: texts or lists of token ids; [] when `input` is neither."""
    value = body.get("input")
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and value:
        if all(isinstance(one, int) for one in value):
            return [value]
        if all(isinstance(one, str | list) for one in value):
            return value
    return []


def prompt_tokens(body: Mapping[str, Any], count: Count) -> int:
    """Prompt tokens of a chat or embeddings request.

    Chat adds 3 tokens for each message beside its role and 3 for the reply's start (OpenAI's cookbook on counting
    tokens). Schemas and tools are not counted.
    """
    messages = body.get("messages")
    if isinstance(messages, list):
        texts = (message_text(message) for message in messages if isinstance(message, dict))
        return 3 + sum(4 + count(text) for text in texts)
    return sum(count(one) if isinstance(one, str) else len(one) for one in embedding_inputs(body))
