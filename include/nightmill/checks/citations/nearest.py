"""Why a quotation was refused, for the model that made it: quotes the document, so it is never stored or logged."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from rapidfuzz.distance import Levenshtein

from nightmill.checks.citations.characters import ELISION
from nightmill.checks.citations.find import folded
from nightmill.checks.citations.fold import Folded
from nightmill.checks.citations.walk import seeds

_WORDS: Final = 200  # of the quotation that are compared
_PLACES: Final = 16
_REACH: Final = 3_000  # characters of the source at either side
_SLACK: Final = 2  # words of the source beyond the quotation's number at either end
_SHOWN: Final = 400  # characters of the document
_DIFFERENCES: Final = 5
_ALIKE: Final = 0.4  # share of words in common from which a passage is worth showing
_WHITE = re.compile(r"\s+")


def refusal(quote: str, source: str) -> str:
    """What is wrong with a quotation that `find_citation` did not find, and the passage that is most like it."""
    said, text = Folded(quote.strip()), folded(source)
    wanted = said.compact.strip(ELISION)
    if not wanted:
        return "it holds no words"
    place = text.compact.find(wanted)
    if place >= 0:
        start, end = text.span(place, place + len(wanted))
        around = _shown(source[max(0, start - 40) : end + 80])
        return f'it begins or ends inside a word, a number or a condition, where the document reads: "{around}"'
    if ELISION in wanted:
        return "it leaves words out (an ellipsis): quote one passage without a gap"
    return _most_alike(said, text, source) or "nothing in the document is like it"


def _most_alike(said: Folded, text: Folded, source: str) -> str | None:
    words = said.words()[:_WORDS]
    best: tuple[float, list[tuple[int, int]]] = (_ALIKE, [])
    for at, place in islice(seeds(said, text), _PLACES):
        around = text.places(max(0, place - _REACH), place + _REACH)
        middle = sum(end <= place for _, end in around)
        window = around[max(0, middle - at - _SLACK) : middle - at + len(words) + _SLACK]
        alike = Levenshtein.normalized_similarity(words, _words(text, window))
        if alike > best[0]:
            best = alike, window
    return _told(words, best[1], text, source) if best[1] else None


def _words(text: Folded, places: list[tuple[int, int]]) -> list[str]:
    return ["".join(text.words(*place)) for place in places]


def _told(words: list[str], window: list[tuple[int, int]], text: Folded, source: str) -> str:
    there = _words(text, window)
    changes = [code for code in Levenshtein.opcodes(words, there) if code.tag != "equal"]
    first, last = 0, len(window)
    if changes and changes[0].src_end == 0:  # words before and after the passage
        first = changes.pop(0).dest_end
    if changes and changes[-1].src_start == len(words):
        last = changes.pop().dest_start
    differences = [
        f'"{" ".join(words[code.src_start : code.src_end])}" '
        f'is "{" ".join(there[code.dest_start : code.dest_end])}" there'
        for code in changes[:_DIFFERENCES]
    ]
    told = f" ({'; '.join(differences)})" if differences else ""
    return f'nearest: "{_shown(source[window[first][0] : window[last - 1][1]])}"{told}'


def _shown(passage: str) -> str:
    passage = _WHITE.sub(" ", passage).strip()
    return passage if len(passage) <= _SHOWN else passage[:_SHOWN] + "..."
