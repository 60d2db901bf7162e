"""One question to one model, with its tokens: shared by batches and realtime calls of every vendor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dev.practice_provider.models.port import EmbeddingAnswer, ModelAnswer, Usage
from dev.practice_provider.models.registry import ModelRegistry
from dev.practice_provider.refusal import Refusal, missing_parameter, model_not_found
from dev.practice_provider.tokens import Count, embedding_inputs, prompt_tokens

MOST_INPUTS_PER_REQUEST = 2048  # OpenAI's API reference, embeddings `input`


@dataclass(frozen=True, slots=True)
class Said:
    """What a chat model said, and what was paid for it."""

    answer: ModelAnswer
    usage: Usage


@dataclass(frozen=True, slots=True)
class Embedded:
    answer: EmbeddingAnswer
    usage: Usage


class Inference:
    """Questions are OpenAI's chat and embeddings bodies, whatever the vendor was sent. `known_tokens`: prompt tokens,
    when they were counted before."""

    def __init__(self, registry: ModelRegistry, count: Count) -> None:
        self._registry = registry
        self.count = count

    def knows_chat(self, model: str) -> bool:
        return self._registry.chat(model) is not None

    def knows_embedding(self, model: str) -> bool:
        return self._registry.embedding(model) is not None

    def chat(self, question: Mapping[str, Any], known_tokens: int | None = None) -> Said | Refusal:
        model = self._registry.chat(str(question.get("model")))
        if model is None:
            return model_not_found(question.get("model"))
        messages = question.get("messages")
        if messages is None:
            return missing_parameter("messages")
        if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
            return Refusal(400, "'messages' must be a list of at least one message.", "invalid_type", "messages")
        if question.get("n") not in (None, 1):
            return Refusal(400, "Only n=1 is supported here.", code="unsupported_value", param="n")
        answer = model.answer(question)
        if isinstance(answer, Refusal):
            return answer
        text = answer.text or answer.refusal or ""
        return Said(answer, answer.usage or Usage(self._tokens(question, known_tokens), self.count(text)))

    def embed(self, question: Mapping[str, Any], known_tokens: int | None = None) -> Embedded | Refusal:
        model = self._registry.embedding(str(question.get("model")))
        if model is None:
            return model_not_found(question.get("model"))
        inputs = embedding_inputs(question)
        if not inputs or any(one in ("", []) for one in inputs) or len(inputs) > MOST_INPUTS_PER_REQUEST:
            message = f"'input' must be 1 to {MOST_INPUTS_PER_REQUEST} texts or token lists, none of them empty."
            return Refusal(400, message, code="invalid_value", param="input")
        answer = model.embed(question)
        if isinstance(answer, Refusal):
            return answer
        return Embedded(answer, answer.usage or Usage(self._tokens(question, known_tokens), 0))

    def _tokens(self, question: Mapping[str, Any], known: int | None) -> int:
        return prompt_tokens(question, self.count) if known is None else known
