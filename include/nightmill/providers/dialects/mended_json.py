"""JSON that a strict parser refuses, read all the same: servers written in Python emit it, and the answer in it is paid
for."""

from __future__ import annotations

import json
import math

from nightmill.providers.cleaning import MOST_DIGITS, SURROGATES


def mended(raw: bytes) -> bytes:
    """The same as strict JSON: half surrogate pairs and bytes that are not UTF-8 become U+FFFD, NaN and numbers that
    are too long become null. Raises ValueError for what is not JSON even so, RecursionError for too deep nesting.
    """
    text = raw.decode("utf-8", "replace")
    value = json.loads(text, parse_constant=_null, parse_float=finite, parse_int=_short)
    return SURROGATES.sub("\ufffd", json.dumps(value, ensure_ascii=False)).encode()


def finite(number: str) -> float | None:
    """A float that JSON can hold; None for what is beyond every double."""
    value = float(number)
    return value if math.isfinite(value) else None


def _null(_constant: str) -> None:
    return None


def _short(digits: str) -> int | None:
    return int(digits) if len(digits) <= MOST_DIGITS else None
