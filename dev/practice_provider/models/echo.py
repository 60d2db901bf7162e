"""A model that answers with what it was told, in the shape that the request asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import orjson

from dev.practice_provider.models.port import ModelAnswer
from dev.practice_provider.models.schema_fill import fill
from dev.practice_provider.tokens import Count, message_text

_FIRST_WORDS = re.compile(r"\S+(?:\s+\S+){0,7}")


class EchoModel:
    """Deterministic. Without a response format it returns the last user message; with a JSON schema an object that
    validates against it (strings are the message's first eight words, verbatim). Honours max_tokens: a longer answer
    is cut and finishes with `length`."""

    def __init__(self, count: Count, mode: Literal["exact", "approx"]) -> None:
        self._count = count
        self._mode = mode

    def answer(self, body: Mapping[str, Any]) -> ModelAnswer:
        text = _user_text(body)
        answer = _shaped(body.get("response_format"), text)
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        if isinstance(limit, int) and len(answer) > limit and self._count(answer) > limit:
            return ModelAnswer(self._cut(answer, limit), "length")
        return ModelAnswer(answer)

    def _cut(self, answer: str, limit: int) -> str:
        """The longest prefix of at most `limit` tokens, to within one token."""
        if self._mode == "approx":
            return answer[: limit * 4]
        low, high = 0, len(answer)
        while low < high:
            middle = (low + high + 1) // 2
            if self._count(answer[:middle]) <= limit:
                low = middle
            else:
                high = middle - 1
        return answer[:low]


def _user_text(body: Mapping[str, Any]) -> str:
    for message in reversed(body["messages"]):
        if message.get("role") == "user":
            return message_text(message)
    return ""


def _shaped(response_format: Any, text: str) -> str:
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    if kind not in ("json_schema", "json_object"):
        return text
    found = _FIRST_WORDS.search(text)
    words = found[0] if found else ""
    if kind == "json_object":
        return orjson.dumps({"text": words}).decode()
    schema = (response_format.get("json_schema") or {}).get("schema") or {}
    return orjson.dumps(fill(schema, words)).decode()
