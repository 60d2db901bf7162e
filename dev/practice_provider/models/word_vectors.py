"""A small real embedding model: the averaged word vectors of WordLlama, whose weights lie in its package.

Texts about the same things have vectors that point the same way. Made on the processor without any download.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

from dev.practice_provider.models.port import EmbeddingAnswer
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.tokens import embedding_inputs

PACKAGE = "wordllama"
DIMENSIONS = (64, 128, 256)  # the model is trained so that the first numbers of a vector are a vector themselves


class WordVectors:
    """Unit vectors. Reads texts only: token ids are another tokenizer's words."""

    def __init__(self) -> None:
        self._loading = Lock()

    def embed(self, body: Mapping[str, Any]) -> EmbeddingAnswer | Refusal:
        dimensions = body.get("dimensions") or DIMENSIONS[-1]
        if dimensions not in DIMENSIONS:
            message = f"'dimensions' must be one of {', '.join(map(str, DIMENSIONS))}."
            return Refusal(400, message, code="invalid_value", param="dimensions")
        texts = embedding_inputs(body)
        if not all(isinstance(text, str) and text.strip() for text in texts):
            return Refusal(400, "'input' must be texts that are not blank.", code="invalid_value", param="input")
        with self._loading:
            model = self._model
        # One by one: in a batch each text would be padded to the longest one.
        return EmbeddingAnswer([_unit(model.embed(text)[0, :dimensions].tolist()) for text in texts])

    @cached_property
    def _model(self) -> Any:
        package = import_module(PACKAGE)
        # Its own folder as the cache: there it finds the tokenizer that came with it, instead of asking for it online.
        return package.WordLlama.load(cache_dir=Path(str(package.__file__)).parent, disable_download=True)


def _unit(vector: list[float]) -> list[float]:
    length = math.hypot(*vector)
    return [value / length for value in vector] if length else vector
