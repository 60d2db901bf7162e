"""The envelope around each request of a message batch, and around each line of its results."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import orjson

from nightmill.providers.answers import Reply, Unreadable
from nightmill.providers.careful_lines import unwrap_carefully
from nightmill.providers.dialects.careful_replies import PROTOCOL_ERROR
from nightmill.providers.dialects.mended_json import finite

ID_KEY = "custom_id"
_NOTHING = msgspec.Raw(b"null")
# The core knows these two as requests that were never executed.
_UNFINISHED = {"canceled": {"code": "batch_cancelled"}, "expired": {"code": "batch_expired"}}


class _Succeeded(msgspec.Struct, gc=False):
    type: Literal["succeeded"]
    message: msgspec.Raw
    error: None = None


class _DocumentedLine(msgspec.Struct, gc=False):
    """Nearly every line. Whatever differs is read with more care."""

    custom_id: str
    result: _Succeeded


class _Result(msgspec.Struct):
    type: Any = None
    message: msgspec.Raw = _NOTHING
    error: Any = None


class _Line(msgspec.Struct):
    custom_id: str
    result: _Result | None = None
    error: Any = None


_read_documented = msgspec.json.Decoder(_DocumentedLine).decode
_read_line = msgspec.json.Decoder(_Line, float_hook=finite).decode


def wrap(record_id: str, body: bytes) -> bytes:
    """One line, ending in LF."""
    return b"".join((b'{"custom_id":', orjson.dumps(record_id), b',"params":', body, b"}\n"))


def unwrap(line: bytes) -> tuple[str, Reply] | Unreadable:
    """The record id and the reply of one result line."""
    try:
        documented = _read_documented(line)
    except (ValueError, RecursionError):
        return unwrap_carefully(line, _read_line, _parts)
    return documented.custom_id, Reply(documented.result.message, 200)


def _parts(line: _Line, sanitised: bool) -> tuple[str, Reply]:
    """A type that nobody knows is never taken for an answer: its request is asked again."""
    result = line.result or _Result()
    errors = [one for one in (result.error, line.error) if one is not None]
    if result.type == "succeeded":
        return line.custom_id, Reply(result.message, 200, errors, sanitised)
    if isinstance(result.type, str) and result.type in _UNFINISHED:
        errors = [_UNFINISHED[result.type]]
    elif result.type != "errored" and not errors:
        errors = [{"code": PROTOCOL_ERROR, "message": "the line's result is of a type that nobody knows"}]
    return line.custom_id, Reply(_NOTHING, 0, errors, sanitised)
