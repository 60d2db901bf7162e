"""Request lines of an OpenAI batch file, fast enough for a million of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from nightmill.domain.errors import ConfigError, SourceError
from nightmill.jobs.settings.job import CHAT, EMBEDDINGS
from nightmill.providers.connection import RequestSpec

# Which field of the body carries the documents, by endpoint. An endpoint belongs here once its answers can be read.
_PAYLOAD_FIELD = {CHAT: "messages", EMBEDDINGS: "input"}
_RESERVED = frozenset({"model", "messages", "input", "stream", "response_format", "custom_id"})


class RequestEncoder:
    """Writes request lines. Everything that does not change is encoded once, here; a line splices the rest in."""

    def __init__(self, request: RequestSpec) -> None:
        payload_field = _PAYLOAD_FIELD.get(request.endpoint)
        if payload_field is None:
            raise ConfigError(
                f"The endpoint {request.endpoint!r} is not one that batches can be made for here.",
                f"Use one of: {', '.join(sorted(_PAYLOAD_FIELD))}.",
            )
        head = {"method": "POST", "url": request.endpoint}
        self._start = b'{"custom_id":'
        self._middle = b"," + orjson.dumps(head)[1:-1] + b',"body":' + _open_object(static_body(request))
        self._middle += orjson.dumps(payload_field) + b":"
        self._end = b"}}\n"
        self._embeds = request.endpoint == EMBEDDINGS

    def line(self, custom_id: str, messages: Sequence[Mapping[str, str]]) -> bytes:
        """One line, ending in LF. Raises SourceError, which names the item and not the text, when it is not Unicode.

        An embedding request carries the text of the only message.
        """
        try:
            payload = orjson.dumps(_only_text(messages) if self._embeds else messages, default=_plain)
            return b"".join((self._start, orjson.dumps(custom_id), self._middle, payload, self._end))
        except TypeError:
            fault = SourceError(
                f"The messages of item {custom_id.encode('ascii', 'replace').decode()!r} cannot be written as UTF-8 "
                "JSON: half a surrogate pair, or a value that is not text.",
                "Clean the text where it is frozen (replace lone surrogates by U+FFFD), then freeze again.",
            )
        # Raised out here, so that the encoder's exception, which may hold the value, does not hang on to it.
        raise fault


def static_body(request: RequestSpec) -> dict[str, Any]:
    """The request body without the documents. Raises ConfigError for parameters that a batch line cannot carry."""
    clash = sorted(_RESERVED & set(request.parameters))
    if clash:
        raise ConfigError(
            f"The request parameters set {', '.join(clash)}, which nightmill writes itself.",
            "Take them out of the job's provider parameters.",
        )
    body: dict[str, Any] = {"model": request.model, **request.parameters}
    if request.response_schema is not None:
        schema = {"name": request.schema_name, "strict": True, "schema": dict(request.response_schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    try:
        json.dumps(body, allow_nan=False)  # orjson would write NaN as null without a word
    except (TypeError, ValueError):
        fault = ConfigError(
            "The request parameters hold something that is not JSON (NaN, infinity, a date, an object).",
            "Write plain numbers, strings, lists and maps in the job's provider parameters.",
        )
    else:
        return body
    raise fault


def _only_text(messages: Sequence[Mapping[str, str]]) -> str:
    (message,) = messages
    return message["content"]


def _open_object(body: Mapping[str, Any]) -> bytes:
    """An encoded JSON object with its closing brace cut off, ready to take one more member."""
    return orjson.dumps(body)[:-1] + b","


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return list(value)
    raise TypeError
