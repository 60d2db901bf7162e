"""Embeddings without a model: unit vectors drawn from a hash of the input, so equal inputs have equal vectors."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Mapping
from typing import Any

from dev.practice_provider.models.port import EmbeddingAnswer
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.tokens import embedding_inputs

DEFAULT_DIMENSIONS = 1536
MOST_DIMENSIONS = 3072


class HashedEmbedding:
    def embed(self, body: Mapping[str, Any]) -> EmbeddingAnswer | Refusal:
        dimensions = body.get("dimensions") or DEFAULT_DIMENSIONS
        if not isinstance(dimensions, int) or not 1 <= dimensions <= MOST_DIMENSIONS:
            message = f"'dimensions' must be an integer from 1 to {MOST_DIMENSIONS}."
            return Refusal(400, message, code="invalid_value", param="dimensions")
        return EmbeddingAnswer([unit_vector(repr(one).encode(), dimensions) for one in embedding_inputs(body)])


def unit_vector(data: bytes, dimensions: int) -> list[float]:
    drawn = array("i", hashlib.shake_256(data).digest(4 * dimensions))
    length = math.sqrt(sum(value * value for value in drawn))
    return [value / length for value in drawn]
