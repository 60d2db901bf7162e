"""Hands requests on to another OpenAI-compatible server, so that a real model can stand behind the Batch API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from dev.practice_provider.models.port import EmbeddingAnswer, ModelAnswer, Usage
from dev.practice_provider.refusal import Refusal


class UpstreamModel:
    """The model `upstream/<name>` asks for `<name>` there. The answer's text, finish reason, refusal and usage come
    back; other fields are dropped. Nothing is retried: a failure becomes the line's error."""

    def __init__(self, base_url: str, key: str | None, timeout_s: float) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._client = httpx.Client(base_url=base_url, headers=headers, timeout=timeout_s)

    def answer(self, body: Mapping[str, Any]) -> ModelAnswer | Refusal:
        found = self._ask("chat/completions", body)
        if isinstance(found, Refusal):
            return found
        try:
            choice = found["choices"][0]
            message = choice["message"]
            reason = choice.get("finish_reason") or "stop"
            return ModelAnswer(message.get("content"), reason, message.get("refusal"), _usage(found))
        except (KeyError, IndexError, TypeError):
            return _strange()

    def embed(self, body: Mapping[str, Any]) -> EmbeddingAnswer | Refusal:
        found = self._ask("embeddings", {**body, "encoding_format": "float"})
        if isinstance(found, Refusal):
            return found
        try:
            data = sorted(found["data"], key=lambda one: int(one["index"]))
            return EmbeddingAnswer([one["embedding"] for one in data], _usage(found))
        except (KeyError, TypeError):
            return _strange()

    def close(self) -> None:
        self._client.close()

    def _ask(self, route: str, body: Mapping[str, Any]) -> dict[str, Any] | Refusal:
        asked = {**body, "model": str(body["model"]).removeprefix("upstream/")}
        try:
            response = self._client.post(route, json=asked)
            found = response.json()
        except httpx.HTTPError as error:
            message = f"The upstream server did not answer: {type(error).__name__}."
            return Refusal(503, message, code="upstream_unreachable", type="server_error")
        except ValueError:
            return _strange()
        if not isinstance(found, dict):
            return _strange()
        if response.status_code != 200:
            error_body = found.get("error")
            fields = error_body if isinstance(error_body, dict) else {}
            return Refusal(
                response.status_code,
                str(fields.get("message") or "The upstream server refused this request."),
                code=fields.get("code"),
                param=fields.get("param"),
                type=str(fields.get("type") or "server_error"),
            )
        return found


def _usage(found: Mapping[str, Any]) -> Usage | None:
    usage = found.get("usage")
    if not isinstance(usage, dict) or not isinstance(usage.get("prompt_tokens"), int):
        return None
    return Usage(usage["prompt_tokens"], int(usage.get("completion_tokens") or 0))


def _strange() -> Refusal:
    message = "The upstream server answered in a shape that is not OpenAI's."
    return Refusal(502, message, code="upstream_shape", type="server_error")
