"""Finds a model's quotation in its source, so that every quoted span can be shown where it stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from rapidfuzz import fuzz

_SAME_AS = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u00b4\u0060",
    '"': "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    " ": "\t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u00a0\u1680\u2028\u2029\u202f\u205f\u3000"
    + "".join(map(chr, range(0x2000, 0x200B))),
}
# Soft hyphen, zero-width characters and the byte order mark: a reader sees nothing, so they count as nothing.
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_RUN = re.compile(f"[ {_INVISIBLE}]{{2,}}|[{_INVISIBLE}]")
_BLANKS = re.compile("  +")  # the same where nothing is invisible, six times as fast
_DIGITS = re.compile(r"\d")
# Fuzzy matching is for sentences: shorter ones match by chance, longer ones cost too much and are no quotations.
_FUZZY_CHARS = range(16, 2001)
_FUZZY_COST = 1_000_000_000  # characters of the quote x characters of the source: about a quarter of a second


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a quotation stands: source[start:end], counted in characters. `score` is 100 unless it is fuzzy."""

    start: int
    end: int
    method: Literal["exact", "normalised", "fuzzy"]
    score: float


def find_citation(quote: str, source: str, min_score: float = 90.0) -> Citation | None:
    """The first place of the quotation, or None.

    Tried in this order: character by character; with white space, quotation marks, dashes and invisible characters
    made alike; and by edit distance, where `min_score` (0 to 100) is the least similarity. A fuzzy match must carry
    the same digits in the same order: a quotation with another amount or date is none.
    """
    if not quote.strip():
        return None
    start = source.find(quote)
    if start >= 0:
        return Citation(start, start + len(quote), "exact", 100.0)
    wanted = normalise(quote)
    text = _folded(source)
    if not wanted:
        return None
    start = text.folded.find(wanted)
    if start >= 0:
        return Citation(*text.span(start, start + len(wanted)), "normalised", 100.0)
    return _fuzzy(wanted, text, min_score)


def normalise(text: str) -> str:
    """The form in which quotations are compared: one plain space, quotation mark and dash each; trimmed."""
    return _fold(text).folded.strip(" ")


@dataclass(frozen=True, slots=True)
class _Folded:
    """A text in its compared form, with where its offsets stand in the text itself."""

    folded: str
    cuts: tuple[int, ...]  # offsets in `folded` right after each run that was shortened, ascending
    origins: tuple[int, ...]  # the same places in the text

    def origin(self, offset: int) -> int:
        found = bisect_right(self.cuts, offset) - 1
        return offset if found < 0 else self.origins[found] + offset - self.cuts[found]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The characters behind folded[start:end], which neither begins nor ends with a space."""
        return self.origin(start), self.origin(end - 1) + 1


def _fold(text: str) -> _Folded:
    for plain, others in _SAME_AS.items():
        for other in others:
            text = text.replace(other, plain)  # a scan for each is far cheaper than str.translate on long texts
    pieces: list[str] = []
    cuts: list[int] = []
    origins: list[int] = []
    position = length = 0
    runs = _RUN if any(char in text for char in _INVISIBLE) else _BLANKS
    for run in runs.finditer(text):
        kept = " " if " " in run[0] else ""
        pieces += (text[position : run.start()], kept)
        length += run.start() - position + len(kept)
        position = run.end()
        cuts.append(length)
        origins.append(position)
    pieces.append(text[position:])
    return _Folded("".join(pieces), tuple(cuts), tuple(origins))


@lru_cache(maxsize=2)
def _folded(source: str) -> _Folded:
    """Several quotations of one answer are looked for in the same source."""
    return _fold(source)


def _fuzzy(wanted: str, text: _Folded, min_score: float) -> Citation | None:
    size = len(wanted)
    if size not in _FUZZY_CHARS or size > len(text.folded) or size * len(text.folded) > _FUZZY_COST:
        return None
    found = fuzz.partial_ratio_alignment(wanted, text.folded, score_cutoff=min_score)
    if found is None:
        return None
    span = text.folded[found.dest_start : found.dest_end]
    start = found.dest_start + len(span) - len(span.lstrip(" "))
    end = found.dest_end - (len(span) - len(span.rstrip(" ")))
    if start >= end or _DIGITS.findall(span) != _DIGITS.findall(wanted):
        return None
    return Citation(*text.span(start, end), "fuzzy", float(found.score))
