"""The one place where what a provider sends becomes a value that may be stored, logged and shown.

A provider's strings can hold NUL (no Postgres text can), half surrogate pairs (no UTF-8 can), line ends and escape
sequences (a log or a terminal obeys them), or a megabyte where a word is expected; its numbers can be NaN, negative or
have 5,000 digits. None of it may keep paid results from being collected.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

MOST_TOKENS = 2**31 - 1  # of one request, and of any count; what says more is no count
MOST_WORD, MOST_MODEL, MOST_PROSE, MOST_ID = 128, 256, 500, 512  # characters
MOST_DIGITS = 19  # of a number: int8
_MOST_VALUES, _MOST_LEVELS = 1_000, 32
_PLAIN_ID = re.compile(r"[!-$&-~]+")  # visible ASCII but %
SURROGATES = re.compile("[\ud800-\udfff]")
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)


def word(value: object, most: int = MOST_WORD) -> str | None:
    """A status, code, type or name, without what cannot be printed; None for anything else than text, or for none."""
    if not isinstance(value, str):
        return None
    if len(value) > most or not value.isprintable():
        value = "".join(one for one in value[: 4 * most] if one.isprintable())[:most]
    return value.strip() or None


def prose(value: object, most: int = MOST_PROSE) -> str | None:
    """A message as one line, with U+FFFD for what cannot be printed; None for anything else than text, or for none."""
    if not isinstance(value, str):
        return None
    if len(value) > most or not value.isprintable():
        line = " ".join(value[: 4 * most].split())[:most]
        value = "".join(one if one.isprintable() else "\ufffd" for one in line)
    return value or None


def whole(value: object) -> int | None:
    """A count from 0 to `MOST_TOKENS`; None for whatever else stands in its place, text and true included."""
    if type(value) is int:  # nearly always: no further questions
        return value if 0 <= value <= MOST_TOKENS else None
    if isinstance(value, float) and value.is_integer() and 0 <= value <= MOST_TOKENS:
        return int(value)
    return None


def identifier(value: object) -> str | None:
    """An id of the provider's, as it is kept and shown: visible ASCII, everything else percent-encoded, so that the
    provider can be asked for it again with `as_sent`. None for what cannot name anything."""
    if type(value) is int:
        value = str(value)
    if not isinstance(value, str) or len(value) > MOST_ID or value in ("", ".", ".."):
        return None
    if _PLAIN_ID.fullmatch(value):
        return value
    return quote(SURROGATES.sub("\ufffd", value), safe="".join(map(chr, range(0x21, 0x7F))).replace("%", ""))


def as_sent(kept: str) -> str:
    """The provider's own form of an id that `identifier` made."""
    return unquote(kept)


def storable(value: object, values: int = _MOST_VALUES, characters: int = MOST_PROSE) -> Any:
    """A copy of a JSON value that jsonb can hold: its first thousand `values` and 32 levels, strings as `prose` of so
    many `characters`. A number that no counter can show (not finite, negative, longer than int8) stays as text, so that
    nobody adds it up."""
    return _copy(value, [values], characters, 0)


def _copy(value: object, left: list[int], most: int, level: int) -> Any:
    left[0] -= 1
    if isinstance(value, str):
        return prose(value, most) or ""
    if isinstance(value, Mapping | list) and level == _MOST_LEVELS:
        return None
    if isinstance(value, Mapping):
        return {prose(key, most) or "": _copy(one, left, most, level + 1) for key, one in value.items() if left[0] > 0}
    if isinstance(value, list):
        return [_copy(one, left, most, level + 1) for one in value if left[0] > 0]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if math.isfinite(value) and 0 <= value < 10**MOST_DIGITS else str(value)[:40]
    return None


def json_value(body: bytes) -> Any:
    """What a JSON body says, however odd it is. Raises ValueError for what is not JSON.

    Bytes that are not UTF-8 become U+FFFD, integers longer than int8 floats, and, where a body is too deep for the
    parser, what lies deeper than 32 levels null.
    """
    text = body.decode(json.detect_encoding(body), "replace").lstrip("\ufeff")
    try:
        return _parse(text)
    except RecursionError:
        return _parse(_shallow(text))


def _parse(text: str) -> Any:
    return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= MOST_DIGITS else float(digits)


def _shallow(text: str) -> str:
    """The same JSON with null for each list and object that lies too deep."""
    kept, level, start = [], 0, 0
    for found in _BRACKETS.finditer(text):
        if found[0] in "[{":
            level += 1
            if level == _MOST_LEVELS + 1:
                kept += [text[start : found.start()], "null"]
        elif found[0] in "]}":
            if level == _MOST_LEVELS + 1:
                start = found.end()
            level -= 1
    return "".join([*kept, text[start:]])
