"""One request to one model, as a response body with usage: shared by batches and realtime calls."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dev.practice_provider.models.port import EmbeddingAnswer, ModelAnswer, Usage
from dev.practice_provider.models.registry import ModelRegistry
from dev.practice_provider.refusal import Refusal, missing_parameter, model_not_found
from dev.practice_provider.tokens import Count, embedding_inputs, prompt_tokens

CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
ENDPOINTS = (CHAT, EMBEDDINGS)
MOST_INPUTS_PER_REQUEST = 2048  # OpenAI's API reference, embeddings `input`


@dataclass(frozen=True, slots=True)
class Completed:
    body: dict[str, Any]
    usage: Usage


class Inference:
    def __init__(self, registry: ModelRegistry, count: Count) -> None:
        self._registry = registry
        self._count = count

    def knows(self, endpoint: str, model: str) -> bool:
        found = self._registry.chat(model) if endpoint == CHAT else self._registry.embedding(model)
        return found is not None

    def run(
        self, endpoint: str, body: Mapping[str, Any], now: float, answer_id: str, known_tokens: int | None = None
    ) -> Answered:
        """`answer_id` is unique to this answer. `known_tokens`: prompt tokens, when they were counted before."""
        if body.get("stream"):
            return Refusal(400, "Streaming is not supported here.", code="unsupported_value", param="stream")
        tokens = prompt_tokens(body, self._count) if known_tokens is None else known_tokens
        return self._chat(body, now, answer_id, tokens) if endpoint == CHAT else self._embed(body, tokens)

    def _chat(self, body: Mapping[str, Any], now: float, answer_id: str, tokens: int) -> Answered:
        model = self._registry.chat(str(body.get("model")))
        if model is None:
            return model_not_found(body.get("model"))
        messages = body.get("messages")
        if messages is None:
            return missing_parameter("messages")
        if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
            return Refusal(400, "'messages' must be a list of at least one message.", "invalid_type", "messages")
        if body.get("n") not in (None, 1):
            return Refusal(400, "Only n=1 is supported here.", code="unsupported_value", param="n")
        answer = model.answer(body)
        if isinstance(answer, Refusal):
            return answer
        usage = answer.usage or Usage(tokens, self._count(answer.text or answer.refusal or ""))
        return Completed(_chat_body(body, answer, usage, now, answer_id), usage)

    def _embed(self, body: Mapping[str, Any], tokens: int) -> Answered:
        model = self._registry.embedding(str(body.get("model")))
        if model is None:
            return model_not_found(body.get("model"))
        inputs = embedding_inputs(body)
        if not inputs or any(one in ("", []) for one in inputs) or len(inputs) > MOST_INPUTS_PER_REQUEST:
            message = f"'input' must be 1 to {MOST_INPUTS_PER_REQUEST} texts or token lists, none of them empty."
            return Refusal(400, message, code="invalid_value", param="input")
        answer = model.embed(body)
        if isinstance(answer, Refusal):
            return answer
        usage = answer.usage or Usage(tokens, 0)
        return Completed(_embedding_body(body, answer, usage), usage)


Answered = Completed | Refusal


def _chat_body(
    body: Mapping[str, Any], answer: ModelAnswer, usage: Usage, now: float, answer_id: str
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    return {
        "id": f"chatcmpl-{answer_id}",
        "object": "chat.completion",
        "created": int(now),
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish_reason}],
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _embedding_body(body: Mapping[str, Any], answer: EmbeddingAnswer, usage: Usage) -> dict[str, Any]:
    packed = body.get("encoding_format") == "base64"
    return {
        "object": "list",
        "data": [
            {
                "object": "embedding",
                "index": index,
                "embedding": base64.b64encode(array("f", vector).tobytes()).decode() if packed else list(vector),
            }
            for index, vector in enumerate(answer.vectors)
        ],
        "model": body["model"],
        "usage": {"prompt_tokens": usage.prompt_tokens, "total_tokens": usage.prompt_tokens},
    }
