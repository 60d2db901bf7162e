"""A rule-based reader of requirement lines such as `requests[socks]>=2.31,<3; python_version < "3.14"`.

The grammar is that of the dependency specifiers in the packaging specifications (PEP 508), with the older form that
puts the versions in brackets. It is read here from the text alone and by no library, so that a library can be the
yardstick.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_HEAD = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[([^\]]*)\])?\s*(.*)", re.DOTALL)
_WORD = re.compile(r"""\s*("[^"]*"|'[^']*'|[()]|===|[<>=!~]=|[<>]|[A-Za-z_.]+)""")
_EXTRA = "extra"
# Names of the first years, which some old metadata still has.
_RENAMED = {
    "os.name": "os_name",
    "sys.platform": "sys_platform",
    "platform.version": "platform_version",
    "platform.machine": "platform_machine",
    "platform.python_implementation": "platform_python_implementation",
    "python_implementation": "platform_python_implementation",
}
_MAX_DEPTH = 20


class _NoMarkerError(ValueError):
    """The text behind the semicolon does not follow the grammar."""


def read_requirement(text: str) -> dict[str, Any]:
    """What the job's schema asks for. Never raises: a condition that cannot be read is given as it stands."""
    found = _HEAD.match(text)
    if found is None:
        return {"package": "", "extras": [], "version_range": "", "marker": "", "is_optional": False}
    name, extras, rest = found.groups()
    address = rest.startswith("@")
    versions, _, condition = rest.partition(" ;" if address else ";")
    try:
        marker, optional = _Marker(condition).read() if condition.strip() else ("", False)
    except _NoMarkerError:
        marker, optional = condition.strip(), re.search(rf"\b{_EXTRA}\b", condition) is not None
    return {
        "package": _normalised(name),
        "extras": sorted({extra.strip() for extra in (extras or "").split(",") if extra.strip()}),
        "version_range": "" if address else _version_range(versions),
        "marker": marker,
        "is_optional": optional,
    }


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _version_range(text: str) -> str:
    bare = "".join(text.split()).removeprefix("(").removesuffix(")")
    return ",".join(sorted({part for part in bare.split(",") if part}))


class _Marker:
    """Reads one condition word by word and writes it again: double quotation marks, single blanks, and brackets only
    where they group."""

    def __init__(self, text: str) -> None:
        self._words = list(_words(text))
        self._at = 0
        self._optional = False

    def read(self) -> tuple[str, bool]:
        """The condition, and whether it asks for an extra."""
        text, count = self._chain(0)
        if self._at < len(self._words):
            raise _NoMarkerError
        return text[1:-1] if count == 1 and text.startswith("(") else text, self._optional

    def _chain(self, depth: int) -> tuple[str, int]:
        """Comparisons joined by `and` and `or` as they stand, and their number."""
        if depth > _MAX_DEPTH:
            raise _NoMarkerError
        parts, count = [self._part(depth)], 1
        while self._peek() in ("and", "or"):
            parts += [self._next(), self._part(depth)]
            count += 1
        return " ".join(parts), count

    def _part(self, depth: int) -> str:
        if self._peek() != "(":
            return self._comparison()
        self._next()
        inner, count = self._chain(depth + 1)
        if self._next() != ")":
            raise _NoMarkerError
        return inner if count == 1 else f"({inner})"

    def _comparison(self) -> str:
        left, operator = self._next(), self._next()
        if operator == "not" and self._peek() == "in":
            operator = f"not {self._next()}"
        right = self._next()
        if _EXTRA in (left, right):
            self._optional = True
            left, right = (_normalised(word) if _quoted(word) else word for word in (left, right))
        return f"{_written(left)} {operator} {_written(right)}"

    def _peek(self) -> str | None:
        return self._words[self._at] if self._at < len(self._words) else None

    def _next(self) -> str:
        word = self._peek()
        if word is None:
            raise _NoMarkerError
        self._at += 1
        return word


def _words(text: str) -> Iterator[str]:
    at, text = 0, text.strip()
    while at < len(text):
        found = _WORD.match(text, at)
        if found is None:
            raise _NoMarkerError
        yield found[1]
        at = found.end()


def _quoted(word: str) -> bool:
    return word[0] in "\"'"


def _written(word: str) -> str:
    if word in ("(", ")", "and", "or"):
        raise _NoMarkerError
    return f'"{word[1:-1]}"' if _quoted(word) else _RENAMED.get(word, word)
