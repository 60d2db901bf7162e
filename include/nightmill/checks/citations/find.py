"""The search for one quotation: exact, folded, misread."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal

import msgspec

from nightmill.checks.citations.characters import ELISION, GAP, JOIN
from nightmill.checks.citations.edges import clean_end, clean_start, head_of, tail_of, widened
from nightmill.checks.citations.fold import Folded
from nightmill.checks.citations.walk import walk
from nightmill.checks.citations.words import respaced

_PLACES: Final = 48  # occurrences of one quotation that are looked at
_BETTER_CASES: Final = 6  # of them for one that is written with the same capitals
_LONGEST_WALK: Final = 2_000  # characters of a quotation that may have misread letters
_SHORTEST_WALK: Final = 8  # letters and digits
_SHORTEST_CUT: Final = 5  # letters of a quotation that may begin or end inside a word


class Citation(msgspec.Struct, frozen=True, gc=False):
    """Where a quotation stands: source[start:end], counted in characters.

    `score` is 100 less the share of misread letters in hundredths; `differing` are the words that were misread, as
    (in the quotation, in the source), lower case.
    """

    start: int
    end: int
    method: Literal["exact", "normalised", "fuzzy"]
    score: float
    differing: tuple[tuple[str, str], ...] = ()


def find_citation(quote: str, source: str, min_score: float = 90.0) -> Citation | None:
    """The place of the quotation that cuts the fewest words, or None.

    `min_score` (0 to 100) is the least share of letters that must be as in the source; 100 accepts no misread letter.
    """
    quote = quote.strip()
    if not quote:
        return None
    start = source.find(quote)
    if start >= 0:
        return _exact(quote, source, start)
    said = Folded(quote)
    wanted = said.compact.strip(ELISION)
    if not any(map(str.isalnum, wanted)):
        return None
    text = folded(source)
    found = text.compact.find(wanted)
    if found >= 0:
        return _normalised(quote, said, wanted, source, text, found)
    if len(quote) > _LONGEST_WALK or len(wanted) < _SHORTEST_WALK or min_score >= 100:
        return None
    return _misread(quote, said, source, text, min_score)


@lru_cache(maxsize=2)
def folded(source: str) -> Folded:
    """Several quotations of one answer are looked for in the same source."""
    return Folded(source)


def _exact(quote: str, source: str, start: int) -> Citation | None:
    head, tail = head_of(quote), tail_of(quote)
    if len(head) == len(quote):  # marks only
        return Citation(start, start + len(quote), "exact", 100.0)
    size, first, last = len(quote), len(head), len(quote) - len(tail)
    cut: Citation | None = None
    for _ in range(_PLACES):
        whole = _is_whole(source, start + first, start + last, tail)
        if whole:
            return Citation(start, start + size, "exact", 100.0)
        if whole is None and cut is None and size >= _SHORTEST_CUT:
            cut = Citation(start, start + size, "exact", 100.0)
        start = source.find(quote, start + 1)
        if start < 0:
            break
    return cut


def _is_whole(source: str, start: int, end: int, tail: str) -> bool | None:
    begins = clean_start(source, start)
    ends = begins is not False and clean_end(source, end, tail)
    if begins is False or ends is False:
        return False
    return True if begins and ends else None


def _normalised(quote: str, said: Folded, wanted: str, source: str, text: Folded, found: int) -> Citation | None:
    tail = quote[len(said.marked.rstrip(GAP + JOIN + ELISION)) :]
    words = said.words()
    best: Citation | None = None
    best_rank = 4
    for tried in range(_PLACES):
        if found < 0 or (best_rank < 2 and tried >= _BETTER_CASES):
            break
        start, end = text.span(found, found + len(wanted))
        found = text.compact.find(wanted, found + 1)
        whole = _is_whole(source, start, end, tail)
        if whole is False or (whole is None and len(wanted) < _SHORTEST_CUT):
            continue
        if not _same_words(words, text, start, end):
            continue
        place = widened(source, start, end, quote)
        rank = 2 * (whole is None) + (source[slice(*place)].split() != quote.split())
        if rank < best_rank:
            best_rank, best = rank, Citation(*place, "normalised", 100.0)
        if rank == 0:
            break
    return best


def _same_words(words: list[str], text: Folded, start: int, end: int) -> bool:
    """Whether spaces were lost or added only where the meaning stays: `notable` is not `not able`."""
    others = text.words(start, end)
    if words == others:
        return True
    return not any(respaced(one, other, text.vouches) for one, other in _respaced(words, others))


def _respaced(words: list[str], others: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """The shortest runs of words that have the same letters and other spaces."""
    left, right = iter(words), iter(others)
    one: list[str] = []
    other: list[str] = []
    ahead = 0  # letters of `one` beyond those of `other`
    while True:
        word = next(left if ahead <= 0 else right, None)
        if word is None:
            return
        (one if ahead <= 0 else other).append(word)
        ahead += len(word) if ahead <= 0 else -len(word)
        if ahead == 0:
            if len(one) != len(other):
                yield one, other
            one, other = [], []


def _misread(quote: str, said: Folded, source: str, text: Folded, min_score: float) -> Citation | None:
    size = len(said.compact)
    place = walk(said, text, int(size * (1 - min_score / 100)))
    if place is None:
        return None
    start, end = place.start, place.end
    tail = quote[len(said.marked.rstrip(GAP + JOIN + ELISION)) :]
    if _is_whole(source, start, end, tail) is False:
        return None
    score = round(100 * (1 - place.edits / size), 1)
    return Citation(*widened(source, start, end, quote), "fuzzy", score, tuple(place.differing))
