"""Finds a quotation in which letters were misread, word by word.

No alignment of whole texts: a few pieces of the quotation are looked up in the source, and from each place the walk
goes outwards as long as every difference is harmless. It ends at the first word more, less or other. So the work is
bounded by the number of places, whatever the texts are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from nightmill.checks.citations.characters import GAP
from nightmill.checks.citations.fold import Folded
from nightmill.checks.citations.words import Vouches, respaced, slips

_PIECES: Final = ((14, 6, 6), (6, 12, 8))  # letters of a piece, how many pieces, places of each
_WALKS: Final = 64  # places in all
_NEAR: Final = 120  # characters of the source that are looked at first
_FAR: Final = 3  # times the quotation's length: how far its words are looked for then
_PARTS: Final = 3  # words that may have become one, or one that may have become so many


@dataclass(slots=True)
class Place:
    """Where a quotation was walked through: text[start:end] of the source, and what differs."""

    start: int
    end: int
    edits: int
    differing: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Way:
    """A walk in one direction: words passed, letters of the next word that belong to the quotation too."""

    words: int
    letters: int
    edits: int
    differing: list[tuple[str, str]]
    whole: bool = True  # False where the source's words ran out


def walk(quote: Folded, source: Folded, most_edits: int) -> Place | None:
    """The place with the fewest misread letters among those that were tried, or None."""
    said = quote.words()
    best: Place | None = None
    for at, place in seeds(quote, source):
        found = _through(quote, said, at, source, place, best.edits - 1 if best else most_edits)
        if found is not None:
            best = found
            if best.edits <= 1:
                break
    return best


def seeds(quote: Folded, source: Folded) -> Iterator[tuple[int, int]]:
    """(word of the quotation, offset in the source's text) pairs to walk from. The word begins at the offset, or a word
    that holds it does."""
    starts = list(accumulate(map(len, quote.words()), initial=0))
    seen: set[int] = set()
    for size, pieces, places in _PIECES:
        for at, piece in _pieces(quote.compact, starts, size, pieces):
            found = source.compact.find(piece)
            for _ in range(places):
                if found < 0 or len(seen) >= _WALKS:
                    break
                begins = found - starts[at]
                if begins not in seen:
                    seen.add(begins)
                    yield at, source.span(found, found + 1)[0]
                found = source.compact.find(piece, found + 1)


def _pieces(compact: str, starts: Sequence[int], size: int, pieces: int) -> Iterator[tuple[int, str]]:
    """Pieces at the starts of words, spread over the quotation."""
    long = [at for at, start in enumerate(starts) if start + size <= len(compact)]
    step = max(1, -(-len(long) // pieces))
    for at in long[::step]:
        yield at, compact[starts[at] : starts[at] + size]


def _through(quote: Folded, said: Sequence[str], at: int, source: Folded, place: int, most: int) -> Place | None:
    place = source.marked.rfind(GAP, 0, place) + 1
    for reach in (_NEAR, _NEAR + _FAR * len(quote.marked)):
        last = source.marked.find(GAP, place + reach)
        last = len(source.marked) if last < 0 else last
        right = _go(said[at:], source.words(place, last), 1, source.vouches, most)
        if right is None:
            return None
        first = source.marked.rfind(GAP, 0, max(0, place - reach)) + 1
        said_before = said[at - 1 :: -1] if at else ()
        left = _go(said_before, source.words(first, place)[::-1], -1, source.vouches, most - right.edits)
        if left is None:
            return None
        if right.whole and left.whole:
            break
    else:
        return None
    differing = (*reversed(left.differing), *right.differing)
    start, end = _start(source, first, place, left), _end(source, place, last, right)
    return Place(start, end, left.edits + right.edits, differing)


def _start(source: Folded, first: int, place: int, way: _Way) -> int:
    before = source.places(first, place)
    if way.letters:
        return before[-way.words - 1][1] - way.letters
    return before[-way.words][0] if way.words else place


def _end(source: Folded, place: int, last: int, way: _Way) -> int:
    after = source.places(place, last)
    if way.letters:
        return after[way.words][0] + way.letters
    return after[way.words - 1][1]


def _go(said: Sequence[str], there: Sequence[str], step: int, vouches: Vouches, most: int) -> _Way | None:
    way = _Way(0, 0, 0, [])
    at = 0
    while at < len(said):
        if way.words >= len(there):
            way.whole = False
            break
        word, other = said[at], there[way.words]
        if word == other:
            at, way.words = at + 1, way.words + 1
            continue
        wrong = slips(word, other, vouches)
        if wrong is not None:
            words, others = [word], [other]
        else:
            joined = _rejoined(said[at : at + _PARTS], there[way.words : way.words + _PARTS], step, vouches)
            if joined is None:
                if at == len(said) - 1 and _is_cut(word, other, step):
                    way.letters = len(word)
                    break
                return None
            words, others, wrong = joined
        if wrong:
            way.edits += wrong
            way.differing.append((" ".join(words[::step]), " ".join(others[::step])))
            if way.edits > most:
                return None
        at, way.words = at + len(words), way.words + len(others)
    return way


def _is_cut(word: str, other: str, step: int) -> bool:
    if len(word) < 4 or not other.isalpha():
        return False
    return other.startswith(word) if step == 1 else other.endswith(word)


def _rejoined(
    said: Sequence[str], there: Sequence[str], step: int, vouches: Vouches
) -> tuple[list[str], list[str], int] | None:
    """Words whose letters are the same but for a lost or added space; one slip where it is one word against two."""
    words, others = [said[0]], [there[0]]
    while True:
        a, b = "".join(words[::step]), "".join(others[::step])
        wrong = 0 if a == b else _one_slip(words, others, a, b, vouches)
        if wrong is not None:
            return None if respaced(words, others, vouches) else (words, others, wrong)
        shorter, rest = (words, said) if len(a) < len(b) else (others, there)
        if len(shorter) >= len(rest):
            return None
        shorter.append(rest[len(shorter)])


def _one_slip(words: list[str], others: list[str], a: str, b: str, vouches: Vouches) -> int | None:
    """One word against two, and one letter misread; a word of one letter would be that letter."""
    parts = words if len(words) > 1 else others
    if len(words) + len(others) != 3 or min(map(len, parts)) < 2:
        return None
    return 1 if slips(a, b, vouches) == 1 else None
