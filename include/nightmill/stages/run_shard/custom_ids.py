"""What names a request line, on the way out and back."""

from __future__ import annotations

import re


def custom_id(token: str, ordinal: int) -> str:
    """Names one request line. Unique across files, [A-Za-z0-9_-] and short, as every provider wants it."""
    return f"{token}-{ordinal}"


def ordinal_of(token: str, name: str) -> int | None:
    """The item that a result line belongs to, or None for a foreign id."""
    prefix, _, number = name.rpartition("-")
    return int(number) if prefix == token and number.isascii() and number.isdigit() else None


def in_text(token: str, text: str) -> list[int]:
    """The items of a file that a text names by their custom_ids."""
    return [int(number) for number in re.findall(rf"(?<![\w-]){re.escape(token)}-(\d{{1,18}})(?!\w)", text)]


def in_raw_lines(token: str) -> re.Pattern[bytes]:
    """Finds the ordinal of a file's own line, as group 1, without parsing the line."""
    return re.compile(rb'"custom_id"\s*:\s*"%b-(\d{1,18})"' % re.escape(token.encode()))
