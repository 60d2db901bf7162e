"""What names a request line, on the way out and back."""

from __future__ import annotations


def custom_id(token: str, ordinal: int) -> str:
    """Names one request line. Unique across files, [A-Za-z0-9_-] and short, as every provider wants it."""
    return f"{token}-{ordinal}"


def ordinal_of(token: str, name: str) -> int | None:
    """The item that a result line belongs to, or None for a foreign id."""
    prefix, _, number = name.rpartition("-")
    return int(number) if prefix == token and number.isascii() and number.isdigit() else None
