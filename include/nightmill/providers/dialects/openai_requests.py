"""Bodies of OpenAI requests, fast enough for a million of them."""

from __future__ import annotations

import re
from typing import Any

from nightmill.domain.errors import ConfigError
from nightmill.providers.connection import RequestSpec
from nightmill.providers.dialects.json_bodies import json_text, static_json

_RESERVED = frozenset({"model", "messages", "input", "stream", "response_format", "custom_id"})
LIMITS = ("max_completion_tokens", "max_tokens")  # parameters that limit an answer's tokens, by precedence
# OpenAI's own models: max_tokens is deprecated there, and the reasoning ones refuse it. Other servers all know it.
_OWN_MODEL = re.compile(r"(ft:)?(gpt-|o\d|chatgpt-)", re.IGNORECASE)


class BodyEncoder:
    """Writes request bodies. Everything that does not change is encoded once, here; a body splices the rest in.

    `payload_field` is the member that carries the documents. Raises ConfigError for parameters that a request cannot
    carry.
    """

    def __init__(self, spec: RequestSpec, payload_field: str, max_output: int | None = None) -> None:
        body = _static_body(spec, max_output or spec.max_output_tokens, is_other=max_output is not None)
        self._start = static_json(body)[:-1] + b"," + json_text(payload_field) + b":"

    def body(self, payload: object) -> bytes:
        """One body. Raises ValueError for what is not Unicode."""
        return b"".join((self._start, json_text(payload), b"}"))


def limit_parameter(spec: RequestSpec) -> str:
    """Under which name the model takes the limit to its answer's tokens; a job that writes one itself decides."""
    written = next((name for name in LIMITS if name in spec.parameters), None)
    return written or (LIMITS[0] if _OWN_MODEL.match(spec.model) else LIMITS[1])


def _static_body(spec: RequestSpec, max_output: int | None, *, is_other: bool) -> dict[str, Any]:
    """The request body without the documents."""
    clash = sorted(_RESERVED & set(spec.parameters))
    if clash:
        raise ConfigError(
            f"The request parameters set {', '.join(clash)}, which nightmill writes itself.",
            "Take them out of the job's provider parameters.",
        )
    body: dict[str, Any] = {"model": spec.model, **spec.parameters}
    if max_output is not None:
        body |= {name: max_output for name in LIMITS if name in spec.parameters and is_other}
        body.setdefault(limit_parameter(spec), max_output)
    if spec.response_schema is not None:
        schema = {"name": spec.schema_name, "strict": True, "schema": dict(spec.response_schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body
