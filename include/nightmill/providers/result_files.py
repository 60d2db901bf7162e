"""Result files on disk: cut into lines at the byte 0x0A and nowhere else.

`str.splitlines` and the SDK's `iter_lines` also cut at U+2028, U+0085 and others, which are legal inside JSON strings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nightmill.providers.cleaning import json_value

BOM = b"\xef\xbb\xbf"
MOST_OF_AN_ERROR = 1 << 20  # bytes
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
        json_value(tail)
    except ValueError:
        return False
    return True


def holds_no_line(path: Path, id_key: str) -> bool:
    """Whether what came in a result file's place is none, although it is not empty: a text, or a single JSON value that
    names no request under `id_key`, such as an error object."""
    if path.stat().st_size > MOST_OF_AN_ERROR:
        return False
    text = path.read_bytes().removeprefix(BOM).strip()
    if not text:
        return False
    if not any(line.removeprefix(BOM).lstrip().startswith(b"{") for line in text.split(b"\n")):
        return True
    try:
        value = json_value(text)
    except ValueError:
        return False  # several lines, or one that was cut
    return not (isinstance(value, dict) and isinstance(value.get(id_key), str))


def last_line(path: Path) -> bytes:
    """What follows the last newline; empty when the file ends in one."""
    with path.open("rb") as source:
        position = source.seek(0, 2)
        tail: list[bytes] = []  # from the end; joined once, however long it is
        while position > 0:
            step = min(_STEP, position)
            position = source.seek(position - step)
            block = source.read(step)
            cut = block.rfind(b"\n")
            tail.append(block[cut + 1 :])
            if cut >= 0:
                break
    return b"".join(reversed(tail))
