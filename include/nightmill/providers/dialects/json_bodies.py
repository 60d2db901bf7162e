"""JSON of request bodies, fast enough for a million of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from nightmill.domain.errors import ConfigError


def json_text(value: object) -> bytes:
    """A value that carries documents, as UTF-8 JSON. Raises ValueError for what is not Unicode; its text quotes
    nothing."""
    try:
        return orjson.dumps(value, default=_plain)
    except TypeError:
        pass
    # Raised out here, so that the encoder's exception, which may hold the value, does not hang on to it.
    raise ValueError("half a surrogate pair, or a value that is not text")


def static_json(body: Mapping[str, Any]) -> bytes:
    """The part of a body that all requests share. Raises ConfigError for parameters that are not JSON."""
    try:
        json.dumps(body, allow_nan=False)  # orjson would write NaN as null without a word
    except (TypeError, ValueError):
        fault = ConfigError(
            "The request parameters hold something that is not JSON (NaN, infinity, a date, an object).",
            "Write plain numbers, strings, lists and maps in the job's provider parameters.",
        )
    else:
        return orjson.dumps(body)
    raise fault


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return list(value)
    raise TypeError
