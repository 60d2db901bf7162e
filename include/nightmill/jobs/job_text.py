"""The text of a job folder's files, the same on every checkout: line ends and byte order marks are an editor's or
git's, and mean nothing."""

from __future__ import annotations

import codecs
import re

from nightmill.domain.errors import Mistake

_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # it begins like that of UTF-16
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_LINE_END = re.compile(r"\r\n?")
_MARK = re.compile("^\ufeff+", re.MULTILINE)  # also where files were joined
_SAVE = "Save it as UTF-8."


def plain(content: bytes) -> bytes:
    """The content with LF line ends and without byte order marks; what is not UTF-8 stays as it is."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return content
    return _MARK.sub("", _LINE_END.sub("\n", text)).encode()


def unreadable(file: str, content: bytes) -> list[Mistake]:
    """Why a file cannot be read as text, or kept in the ledger."""
    known = next((name for mark, name in _MARKS if content.startswith(mark)), None) or _without_mark(content)
    if known is not None:
        return [Mistake(file, 1, None, f"is {known}, not UTF-8", _SAVE)]
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        return [Mistake(file, line, None, f"is not UTF-8 (byte {fault.start})", _SAVE)]
    if b"\0" in content:  # the ledger keeps a copy of each file, and Postgres no NUL
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        return [Mistake(file, line, None, "holds the character NUL", "Remove it.")]
    return []


def _without_mark(content: bytes) -> str | None:
    """UTF-16 of mostly Latin text has a NUL in every second place."""
    for first in (0, 1):
        half = content[first::2]
        if len(half) > 1 and half.count(0) > len(half) // 2:
            return "UTF-16"
    return None
