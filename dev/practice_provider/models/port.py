"""What the simulator asks of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dev.practice_provider.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One chat completion. `usage` None: the simulator counts the tokens itself."""

    text: str | None
    finish_reason: str = "stop"
    refusal: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class EmbeddingAnswer:
    vectors: Sequence[Sequence[float]]
    usage: Usage | None = None


class Model(Protocol):
    """Answers chat requests; called from several threads. A request that fails is a Refusal, never an exception."""

    def answer(self, body: Mapping[str, Any]) -> ModelAnswer | Refusal: ...


class EmbeddingModel(Protocol):
    def embed(self, body: Mapping[str, Any]) -> EmbeddingAnswer | Refusal: ...
