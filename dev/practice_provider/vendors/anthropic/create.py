"""The check of a create call. Only the frame of each request is looked at: bad parameters become errored lines."""

from __future__ import annotations

import re
from typing import Any

import orjson

from dev.practice_provider.refusal import Refusal
from dev.practice_provider.settings import AnthropicSettings

_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
TOO_LARGE = "Request exceeds the maximum size"  # the real message names no limit either


def requests_in(body: bytes, settings: AnthropicSettings) -> list[dict[str, Any]] | Refusal:
    """The requests of a create, or why it is refused as a whole."""
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError:
        return Refusal(400, "The request body is not valid JSON")
    if not isinstance(given, dict) or given.keys() != {"requests"}:
        return Refusal(400, "requests: Field required, and extra inputs are not permitted")
    requests = given["requests"]
    if not isinstance(requests, list) or not requests:
        return Refusal(400, "requests: List should have at least 1 item")
    if len(requests) > settings.requests_per_batch:
        return Refusal(413, TOO_LARGE)
    seen = set[str]()
    for number, one in enumerate(requests):
        found = _complaint(one, seen)
        if found is not None:
            return Refusal(400, f"requests.{number}.{found}")
        seen.add(one["custom_id"])
    return requests


def _complaint(one: Any, seen: set[str]) -> str | None:
    if not isinstance(one, dict) or one.keys() != {"custom_id", "params"}:
        return "custom_id and params: Fields required, and extra inputs are not permitted"
    if not isinstance(one["params"], dict):
        return "params: Input should be an object"
    custom_id = one["custom_id"]
    if not isinstance(custom_id, str) or not _CUSTOM_ID.fullmatch(custom_id):
        return f"custom_id: String should match pattern '^{_CUSTOM_ID.pattern}$'"
    return f"custom_id: '{custom_id}' is not unique within the batch" if custom_id in seen else None
