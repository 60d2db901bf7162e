"""Requests and response bodies of Chat Completions and Embeddings."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Mapping
from typing import Any

from dev.practice_provider.inference import Inference
from dev.practice_provider.models.port import EmbeddingAnswer, ModelAnswer, Usage
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.vendor import Answered, Completed

CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
ENDPOINTS = (CHAT, EMBEDDINGS)


def run(
    inference: Inference, endpoint: str, body: Mapping[str, Any], now: float, answer_id: str, known_tokens: int | None
) -> Answered:
    """`answer_id` is unique to this answer. `known_tokens`: prompt tokens, when they were counted before."""
    if body.get("stream"):
        return Refusal(400, "Streaming is not supported here.", code="unsupported_value", param="stream")
    if endpoint == CHAT:
        said = inference.chat(body, known_tokens)
        if isinstance(said, Refusal):
            return said
        return Completed(_chat_body(body, said.answer, said.usage, now, answer_id), said.usage)
    embedded = inference.embed(body, known_tokens)
    if isinstance(embedded, Refusal):
        return embedded
    return Completed(_embedding_body(body, embedded.answer, embedded.usage), embedded.usage)


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
