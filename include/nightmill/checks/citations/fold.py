"""The form in which a quotation and its source are compared.

A text is first *marked*: every character becomes one character, so that offsets stay what they are. Letters are
lower-case and composed, compatibility forms are plain, and what a reader does not see or would not miss (white space,
punctuation, markup) is a gap. What is left, with the gaps taken out, is the *compact* form: one search in it finds a
quotation however it is spaced, hyphenated, quoted or cased.

Punctuation that touches a digit belongs to the number and is kept, as are blanks, redactions and elisions: `1,000` is
not `1000`, `(5)` is not `5`, and `____` is not nothing. Kept punctuation is written as a control character, which keeps
English texts ASCII: Python handles those several times as fast.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from typing import Final

from nightmill.checks.citations.characters import GAP, JOIN, expansions, map_characters, replace
from nightmill.checks.citations.neighbours import mark_neighbours

_COMMON: Final = 3  # times that a word stands in a text before the text vouches for it
_BLOCK: Final = 128  # characters of a text between two known offsets
_UNSEEN: Final = GAP + JOIN
_DELETED: Final = "!\"#'()*,-./:;?[\\]^_`{|}~\n"
_ASCII_GAP: Final = {ord(char): GAP for char in _DELETED}
_ASCII_COMPACT: Final = {ord(GAP): None, ord(JOIN): None}
_WORD = re.compile("[^ ]+")


class Folded:
    """A text in its compared form, with the way back to its offsets."""

    def __init__(self, text: str) -> None:
        self.marked, self._expanding = _mark(text)
        self._vouched: dict[str, bool] = {}
        if self.marked.isascii():
            self.compact = self.marked.translate(_ASCII_COMPACT)
        else:
            self.compact = self._letters("".join(self.marked.replace(JOIN, "").split()))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The characters of the text behind compact[start:end]."""
        return self._origin(start), self._origin(end - 1) + 1

    def words(self, start: int = 0, end: int | None = None) -> list[str]:
        """The words of text[start:end], in compared form."""
        return self._letters(self.marked[start:end].replace(JOIN, "")).split()

    def places(self, start: int, end: int) -> list[tuple[int, int]]:
        """Where the words of text[start:end] stand in the text."""
        found = ((run.start() + start, run.end() + start) for run in _WORD.finditer(self.marked[start:end]))
        return [place for place in found if self.marked[slice(*place)].strip(JOIN)]

    def vouches(self, word: str) -> bool:
        """Whether a word stands in the text so often that it is one."""
        if word not in self._vouched:
            self._vouched[word] = self.marked.count(f"{GAP}{word}{GAP}") >= _COMMON
        return self._vouched[word]

    def _letters(self, marked: str) -> str:
        return replace(marked, {char: expansions[char] for char in self._expanding})

    def _origin(self, offset: int) -> int:
        """The text's offset of the character behind compact[offset]."""
        block = bisect_right(self._blocks, offset) - 1
        left = offset - self._blocks[block]
        place = block * _BLOCK
        for char in self.marked[place : place + _BLOCK]:
            if char not in _UNSEEN:
                left -= len(expansions[char]) if char in self._expanding else 1
                if left < 0:
                    break
            place += 1
        return place

    @cached_property
    def _blocks(self) -> list[int]:
        """Where each block of the marked text starts in the compact form."""
        sizes = []
        for first in range(0, len(self.marked), _BLOCK):
            block = self.marked[first : first + _BLOCK]
            if self._expanding:
                block = self._letters(block)
            sizes.append(len(block) - block.count(GAP) - block.count(JOIN))
        return list(accumulate(sizes, initial=0))


def _mark(text: str) -> tuple[str, str]:
    """The marked text, and those of its characters that stand for several."""
    marked, expanding = map_characters(text)
    marked = mark_neighbours(marked)
    if marked.isascii():
        return marked.translate(_ASCII_GAP), expanding
    for char in _DELETED:
        marked = marked.replace(char, GAP)
    return marked, expanding
