"""Exact offline token counts (byte pair encodings of OpenAI's models)."""

from __future__ import annotations

import gzip
import math
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import distribution
from typing import Any

from nightmill.jobs.settings.provider_settings import CHAT, EMBEDDINGS

# OpenAI's cookbook on counting tokens: 3 per message, 1 for its role, 3 for the start of the reply.
_PER_MESSAGE = 4
_PER_REPLY = 3

_OLDER_MODELS = ("gpt-4-", "gpt-3.5", "text-embedding-")


class TokenCounter:
    """Counts the tokens of rendered messages for a model. Unknown models are counted as o200k_base. `factor`: how many
    of the model's tokens come to one of ours, at the most.

    An embedding request is its text and nothing around it. Safe to use from several threads.
    """

    def __init__(self, model: str, task: str = CHAT, factor: float = 1.0) -> None:
        self._factor = factor
        self._per_reply, self._per_message = (0, 0) if task == EMBEDDINGS else (_PER_REPLY, _PER_MESSAGE)
        older = model == "gpt-4" or model.startswith(_OLDER_MODELS)
        self._encode = _tokenizer("cl100k" if older else "o200k").encode

    def count(self, text: str) -> int:
        """Tokens of a text. Special-token markers in it are counted as plain text, never refused. Raises
        UnicodeEncodeError on half a surrogate pair."""
        try:
            return len(self._encode(text))
        except TypeError:
            text.encode()
            raise

    def count_messages(self, messages: Sequence[Mapping[str, str]]) -> int:
        """Prompt tokens of a request."""
        tokens = self._per_reply
        for message in messages:
            tokens += self._per_message + self.count(message["content"])
        return tokens if self._factor == 1.0 else math.ceil(tokens * self._factor)


@lru_cache(maxsize=2)
def _tokenizer(name: str) -> Any:
    """gigatoken counts ten times as fast as bpe-openai, the reference, which brings the vocabularies; a test holds one
    against the other. They differ by a token or so where a character stands that Unicode 17 added. No special tokens
    are named: their markers are plain text here."""
    from gigatoken.gigatoken_rs import BPETokenizer

    packed = distribution("bpe-openai").locate_file(f"bpe_openai/data/{name}_base.tiktoken.gz")
    with gzip.open(str(packed)) as vocabulary, tempfile.NamedTemporaryFile(suffix=".tiktoken") as file:
        shutil.copyfileobj(vocabulary, file)
        file.flush()
        return BPETokenizer.from_tiktoken(file.name, name, {})
