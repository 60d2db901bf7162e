"""What names a request on the way out and back: the file's token, a window of the item, and the item.

Window 0 is the whole document. An item that needs several requests numbers them.
"""

from __future__ import annotations

import re

WHOLE = 0
_WINDOW = r"\d{1,4}"


def record_id(token: str, ordinal: int, window: int = WHOLE) -> str:
    """Names one request. Unique across files, [A-Za-z0-9_-] and at most 64 characters, as every provider wants it."""
    return f"{token}-{window}-{ordinal}"


def ordinal_of(token: str, name: str) -> int | None:
    """The item that a result line belongs to, or None for a foreign id."""
    rest, _, number = name.rpartition("-")
    prefix, _, window = rest.rpartition("-")
    is_ours = prefix == token and number.isascii() and number.isdigit() and window.isascii() and window.isdigit()
    return int(number) if is_ours else None


def in_text(token: str, text: str) -> list[int]:
    """The items of a file that a text names by their record ids."""
    return [int(one) for one in re.findall(rf"(?<![\w-]){re.escape(token)}-{_WINDOW}-(\d{{1,18}})(?!\w)", text)]


def in_raw_lines(token: str, id_key: str) -> re.Pattern[bytes]:
    """Finds the ordinal of a file's own line, as group 1, without parsing the line. `id_key` is the envelope's."""
    ours = rf'"{re.escape(id_key)}"\s*:\s*"{re.escape(token)}-{_WINDOW}-(\d{{1,18}})"'
    return re.compile(ours.encode())
