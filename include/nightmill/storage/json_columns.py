"""Reading JSON columns of a source: what their numbers say must reach the prompt digit by digit."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1  # what a payload line holds as a number


def loads(data: str | bytes) -> Any:
    """The value of a JSON or JSONB column. Numbers that a payload line would round, or cannot hold, are their text."""
    return _DECODER.decode(data.decode() if isinstance(data, bytes) else data)


def _whole(digits: str) -> int | str:
    value = int(digits) if len(digits) <= len(str(_SMALLEST)) else _LARGEST + 1  # thousands of digits take long
    return value if _SMALLEST <= value <= _LARGEST else digits


def _decimal(digits: str) -> float | str:
    value = float(digits)
    return value if Decimal(repr(value)) == Decimal(digits) else digits


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_decimal)
