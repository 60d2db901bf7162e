"""Errors beside or in place of answers, in whatever shape a server writes them: an object, an object in an
object, a list of them, a text, JSON in a text; with a number, digits or words where a status or code belongs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from nightmill.domain.error_words import status_in
from nightmill.domain.failure_rules import NO_CODE
from nightmill.providers.answers import Failed, Usage
from nightmill.providers.cleaning import json_value, prose, word

_MOST_LEVELS = 8
_NESTED = ("error", "errors", "message", "detail", "body")
_MESSAGES = ("message", "msg", "detail", "error", "error_message", "errorMessage", "title")
_TYPES = ("type", "status", "__type")
_STATUSES = ("status_code", "statusCode", "http_status", "status")
_NO_ERROR = frozenset({"", "none", "null"})  # as Python and JSON write it into a text


def says_anything(error: object) -> bool:
    """Whether something stands where an error belongs: not null, nor nothing, nor an object of nulls."""
    if isinstance(error, str):
        return error.strip().casefold() not in _NO_ERROR
    return any(error.values()) if isinstance(error, dict) else bool(error)


def failed_by(status: int, errors: Sequence[object], usage: Usage) -> Failed:
    """What failed, by what `errors` say of it: the first counts, the others say what it leaves out.

    `status` is the line's own, 0 when it carries none; where it is that of no error, one that an error holds counts.
    """
    parts = [part for error in errors for part in _parts(error)]
    if status < 300:
        status = next((found for part in parts if (found := _status(part)) >= 400), status)
    kind = _first(parts, _TYPES) or ""
    code = _first(parts, ("code",)) or kind or NO_CODE
    message = next((text for part in parts for name in _MESSAGES if (text := prose(part.get(name)))), "")
    return Failed(status, code, message, usage, kind)


def _parts(error: object) -> list[Mapping[str, Any]]:
    """The objects of an error, the innermost first."""
    parts: list[Mapping[str, Any]] = []
    for _ in range(_MOST_LEVELS):
        if isinstance(error, list):
            error = error[0] if error else None
        if isinstance(error, str):
            error = _in_text(error)
        if not isinstance(error, dict):
            break
        parts.append(error)
        error = next((error[name] for name in _NESTED if isinstance(error.get(name), dict | list)), None)
    return parts[::-1]


def _in_text(text: str) -> object:
    if text.lstrip().startswith("{"):
        try:
            return json_value(text.encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            pass
    return {"message": text}


def _first(parts: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str | None:
    """The first word under one of the names; digits are a status and no word."""
    found = (word(part.get(name)) for part in parts for name in names)
    return next((one for one in found if one and not _is_status(one)), None)


def _status(part: Mapping[str, Any]) -> int:
    code = part.get("code")
    if type(code) is int or (isinstance(code, str) and _is_status(code)):
        return status_in(code)
    return next((found for name in _STATUSES if (found := status_in(part.get(name)))), 0)


def _is_status(text: str) -> bool:
    return bool(re.fullmatch(r"\s*(?:HTTP[ _/-]?)?[1-5]\d\d\s*", text, re.IGNORECASE))
