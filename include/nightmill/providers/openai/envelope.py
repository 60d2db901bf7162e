"""The envelope around each request of a batch file, and around each line of its result files (Batch API reference)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import orjson

from nightmill.domain.error_words import status_in
from nightmill.providers.answers import Reply, Unreadable
from nightmill.providers.careful_lines import unwrap_carefully
from nightmill.providers.dialects.mended_json import finite

ID_KEY = "custom_id"
_NOTHING = msgspec.Raw(b"null")


class _DocumentedResponse(msgspec.Struct, gc=False):
    status_code: Literal[200]
    body: msgspec.Raw


class _DocumentedLine(msgspec.Struct, gc=False):
    """As the API documents it: nearly every line. Whatever differs is read with more care."""

    custom_id: str
    response: _DocumentedResponse
    error: None = None


class _Response(msgspec.Struct):
    status_code: Any = None
    body: msgspec.Raw = _NOTHING
    error: Any = None


class _Line(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: Any = None


_read_documented = msgspec.json.Decoder(_DocumentedLine).decode
_read_line = msgspec.json.Decoder(_Line, float_hook=finite).decode


class Wrapper:
    """Writes the envelope for one endpoint."""

    def __init__(self, endpoint: str) -> None:
        head = {"method": "POST", "url": endpoint}
        self._middle = b"," + orjson.dumps(head)[1:-1] + b',"body":'

    def wrap(self, record_id: str, body: bytes) -> bytes:
        """One line, ending in LF."""
        return b"".join((b'{"custom_id":', orjson.dumps(record_id), self._middle, body, b"}\n"))


def unwrap(line: bytes) -> tuple[str, Reply] | Unreadable:
    """The record id and the reply of one result line."""
    try:
        documented = _read_documented(line)
    except (ValueError, RecursionError):
        return unwrap_carefully(line, _read_line, _parts)
    return documented.custom_id, Reply(documented.response.body, 200)


def _parts(line: _Line, sanitised: bool) -> tuple[str, Reply]:
    response = line.response or _Response()
    errors = [one for one in (line.error, response.error) if one is not None]
    return line.custom_id, Reply(response.body, status_in(response.status_code), errors, sanitised)
