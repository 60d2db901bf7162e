"""Lines of JSON as a provider writes them into result files."""

from __future__ import annotations

import json
from typing import Any

import orjson


def encoded(line: dict[str, Any]) -> bytes:
    """The line as JSON, ending in LF."""
    try:
        return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:  # half a surrogate pair: a server written in Python escapes it
        return json.dumps(line).encode() + b"\n"
