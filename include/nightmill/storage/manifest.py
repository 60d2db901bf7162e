"""Source rows as manifest rows: key, content hash, tokens, and why a row is never sent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from nightmill.domain.errors import SourceError
from nightmill.domain.failures import FailureClass
from nightmill.domain.keys import KeyMaker
from nightmill.domain.outcomes import NeverSent
from nightmill.jobs.contract import JobDefinition
from nightmill.storage.items import ItemRow
from nightmill.storage.source_values import nested_too_deep
from nightmill.storage.sources import SourceRow

DELETED = NeverSent("deleted", str(FailureClass.INPUT))
_SENT = (None, None, None)

Measure = Callable[[dict[str, Any]], tuple[int, NeverSent | None]]
"""Prompt tokens of an item's request, and why it is never sent (None: it is); see checks.inputs."""

_PLAIN = frozenset({str, int, bool, type(None)})  # values that look the same after a round trip through JSON


class Manifest:
    """Turns source rows into manifest rows and payload lines in one pass, and sums them up.

    `keep_line` gets each payload line; an estimate keeps none.
    """

    def __init__(self, pinned: JobDefinition, measure: Measure, keep_line: Callable[[bytes], object]) -> None:
        self._measure = measure
        self._keep_line = keep_line
        self._keys = KeyMaker(pinned.versions)
        self._mark = pinned.deleted_in_source
        self._keeps_mark = self._mark in pinned.payload_columns
        self.tokens = 0
        self.hash = hashlib.sha256()

    def rows(self, source: Iterator[SourceRow]) -> Iterator[ItemRow]:
        """Manifest rows in ordinal order; payload lines are kept on the way."""
        for ordinal, row in enumerate(source):
            deleted = self._takes_mark(row.values)
            try:
                line = orjson.dumps(row.values, default=_as_text, option=orjson.OPT_SORT_KEYS)
            except TypeError:  # its chain can quote the document
                line = None
            if line is None:
                raise _unwritable(row)
            content = hashlib.sha256(line).digest()
            version = row.source_version if row.source_version is not None else content.hex()
            key = self._keys.key(row.tenant, row.source_id, version)
            plain = _PLAIN.issuperset(map(type, row.values.values()))
            try:
                tokens, skip = self._measure(row.values if plain else orjson.loads(line))
            except SourceError as fault:
                raise SourceError(f"Source id {row.source_id!r}: {fault.cause}", fault.remedy) from None
            if deleted:
                tokens, skip = 0, DELETED
            self._keep_line(line)
            self.tokens += tokens
            self.hash.update(key)
            self.hash.update(content)
            yield (
                ordinal, key, row.source_id, version, content, row.tenant, row.domain, tokens, *(skip or _SENT),
                row.required,
            )  # fmt: skip

    def _takes_mark(self, values: dict[str, Any]) -> bool:
        """Whether an id is deleted. Unless prompt.md asks for it, the mark is no part of the content: an id can be
        marked, and come back, with the same version."""
        if self._mark is None:
            return False
        return _is_true(self._mark, values[self._mark] if self._keeps_mark else values.pop(self._mark))


def _is_true(name: str, value: Any) -> bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    raise SourceError(
        f"The column {name!r} marks deleted ids (publish.deleted), and its value is no boolean.",
        f"Make it one in the source query: ... as {name}.",
    )


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):
        raise TypeError
    return str(value)


def _holds_bytes(values: Sequence[Any]) -> bool:
    return any(isinstance(one, bytes) or (isinstance(one, list | tuple) and _holds_bytes(one)) for one in values)


def _unwritable(row: SourceRow) -> SourceError:
    """Names the column that no line of UTF-8 text can be made of; never its value."""
    for name, value in row.values.items():
        if isinstance(value, bytes) or (isinstance(value, list | tuple) and _holds_bytes(value)):
            return SourceError(
                f"The column {name!r} of the source holds bytes, not text.",
                f"Decode it in the source query: convert_from({name}, 'UTF8') as {name}, or encode({name}, 'hex').",
            )
        try:
            orjson.dumps(value, default=_as_text)
        except TypeError as fault:
            if "recursion" in str(fault).casefold():
                return nested_too_deep(f"The column {name!r} of source id {row.source_id!r}")
            break
    return SourceError(
        f"The column {name!r} of source id {row.source_id!r} cannot be written as UTF-8: it holds half a surrogate "
        "pair.",
        "Correct the text at its origin (replace lone surrogates by U+FFFD), or leave such rows out in the source "
        "query.",
    )
