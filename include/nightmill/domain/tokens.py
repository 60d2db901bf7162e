"""Exact offline token counts (byte pair encodings of OpenAI's models)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from nightmill.domain.job import CHAT, EMBEDDINGS

# OpenAI's cookbook on counting tokens: 3 per message, 1 for its role, 3 for the start of the reply.
_PER_MESSAGE = 4
_PER_REPLY = 3

_OLDER_MODELS = ("gpt-4-", "gpt-3.5", "text-embedding-")


class TokenCounter:
    """Counts the tokens of rendered messages for a model. Unknown models are counted as o200k_base.

    An embedding request is its text and nothing around it.
    """

    def __init__(self, model: str, endpoint: str = CHAT) -> None:
        self._per_reply, self._per_message = (0, 0) if endpoint == EMBEDDINGS else (_PER_REPLY, _PER_MESSAGE)
        older = model == "gpt-4" or model.startswith(_OLDER_MODELS)
        self._encoding = _encoding("cl100k_base" if older else "o200k_base")

    def count(self, text: str) -> int:
        """Tokens of a text. Special-token markers in it are counted as plain text, never refused."""
        # The public encode() refuses a million characters and more; the binding has no such limit.
        return int(self._encoding.count(text))

    def count_messages(self, messages: Sequence[Mapping[str, str]]) -> int:
        """Prompt tokens of a request."""
        return self._per_reply + sum(self._per_message + self.count(message["content"]) for message in messages)


@lru_cache(maxsize=2)
def _encoding(name: str) -> Any:
    with warnings.catch_warnings():
        # Importing bpe_openai uses a deprecated function of importlib.resources.
        warnings.simplefilter("ignore", DeprecationWarning)
        from bpe_openai import _bindings  # type: ignore[import-untyped]
    # The public get_encoding() also builds Python tables for decoding: 2 s and 150 MB that counting does not need.
    return _bindings.tokenizer_for_encoding(name)
