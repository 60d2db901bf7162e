"""Result files on disk: cut into lines at the byte 0x0A and nowhere else.

`str.splitlines` and the SDK's `iter_lines` also cut at U+2028, U+0085 and others, which are legal inside JSON strings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

BOM = b"\xef\xbb\xbf"
_STEP = 1 << 16


def split_lines(path: Path) -> Iterator[bytes]:
    """Lines without LF or CRLF, blank ones included so that positions are line numbers; no more than one in memory.

    A byte order mark at the start is dropped; a last line without a newline is a line.
    """
    with path.open("rb") as source:
        for number, line in enumerate(source):
            bare = line.rstrip(b"\r\n")
            yield bare.removeprefix(BOM) if number == 0 else bare


def ends_complete(path: Path) -> bool:
    """True when the file is empty, ends in a newline, or its last line is whole JSON: else the transfer was cut."""
    tail = last_line(path)
    if not tail.strip():
        return True
    try:
        json.loads(tail.removeprefix(BOM))
    except (ValueError, RecursionError):
        return False
    return True


def last_line(path: Path) -> bytes:
    """What follows the last newline; empty when the file ends in one."""
    with path.open("rb") as source:
        position = source.seek(0, 2)
        tail = b""
        while position > 0:
            step = min(_STEP, position)
            position = source.seek(position - step)
            block = source.read(step)
            cut = block.rfind(b"\n")
            if cut >= 0:
                return block[cut + 1 :] + tail
            tail = block + tail
        return tail
