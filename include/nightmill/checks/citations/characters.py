"""What one character is compared as: canonical and compatibility equivalence, width, dashes, quotation marks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

GAP: Final = " "  # what separates words
JOIN: Final = "\x7f"  # what is taken out inside a word: soft hyphens, apostrophes, hyphens at a line's end
LETTER: Final = "a-z\x80-\U0010ffff"

# Control characters that no split takes for white space.
_CODES = iter("\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b")
KEPT: Final = {char: next(_CODES) for char in ".,-: ()[]'\";*_#~^/"}
OTHER_KEPT: Final = next(_CODES)
BLANK: Final = next(_CODES)
ELISION: Final = next(_CODES)
_LINE_ENDS: Final = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"

_DASHES: Final = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63－"
_APOSTROPHES: Final = "‘’‚\u201b\u2032\u00b4\u02bc\u02b9＇"
_QUOTES: Final = "“”„\u201f\u2033«»\u2039\u203a「」『』《》＂"
_NOTICES: Final = "™®©℠"
_BULLETS: Final = "\u2022\u2023\u2043\u25a0\u25aa\u25ab\u25b6\u25ba\u25c6\u25c7\u25cf\u25e6\u2756\u27a2\u27a4"
_SPECIAL: Final = {
    **dict.fromkeys(_DASHES, "-"),
    **dict.fromkeys(_APOSTROPHES, "'"),
    **dict.fromkeys(_QUOTES, '"'),
    **dict.fromkeys(_NOTICES, GAP),
    **dict.fromkeys(_BULLETS, "*"),
    **dict.fromkeys(_LINE_ENDS, "\n"),
    **dict.fromkeys("\u00b7\u2219\u22c5。．\uff61", "."),
    **dict.fromkeys("、\uff64", ","),
    **dict.fromkeys("\u301c～", "~"),
    **dict.fromkeys("§‰\u2031", ""),  # kept as they are
    "…": ELISION,
}
_INVISIBLE: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u3164\ufe00\ufe01\ufe02\ufe03\ufe0e\ufe0f\uffa0"
)

_DECOMPOSED = re.compile(
    "[^\x00-\x1f ][\u0300-\u036f\u0591-\u05bd\u064b-\u0655\u093c\u09bc\u0a3c\u0b3c\u1ab0-\u1aff\u1dc0-\u1dff"
    "\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f]{1,30}|[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?"
)
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f]")
_BEYOND_ASCII = re.compile("[^\x00-\x7f]+")


_ASCII_MARK: Final = {
    **dict.fromkeys(range(32), GAP), **{ord(char): "\n" for char in "\n\r\v\f\x1c\x1d\x1e"}, 127: GAP,
    **{code: chr(code + 32) for code in range(65, 91)},
}  # fmt: skip
_MANY_CHARACTERS = 60  # above so many distinct ones, one translation is cheaper than a replacement for each

_marks: dict[str, str] = {}  # character -> what it is marked as: one character, or several (its expansion)
_PRIVATE: Final = 0x100000  # plane 16 of private characters, which no text is known to use
_joined: dict[tuple[str, str], str] = {}  # (expansion, character) -> the private character that stands for it
expansions: dict[str, str] = {}  # private or expanding character -> its letters


def map_characters(text: str) -> tuple[str, str]:
    """The text with each character as it is compared, as long as it was, and those that stand for several."""
    if text.isascii():
        return text.translate(_ASCII_MARK), ""
    text = replace(text, {char: _ASCII_MARK[ord(char)] for char in set(_CONTROLS.findall(text))})
    if not unicodedata.is_normalized("NFC", text):
        text = _DECOMPOSED.sub(_compose, text)
    changed: dict[str, str] = {}
    expanding: list[str] = []
    with_digits: list[str] = []
    for char in set("".join(_BEYOND_ASCII.findall(text))):
        mark = _marks.get(char)
        if mark is None:
            mark = _marks[char] = mark_of(char)
        if mark == char:
            continue
        if (mark[0].isdigit() or mark[-1].isdigit()) and not char.isdecimal():
            with_digits.append(char)
        if len(mark) == 1:
            changed[char] = mark
        else:
            expansions[char] = mark
            expanding.append(char)
    if with_digits:
        beside = f"[{re.escape(''.join(with_digits))}]"
        text = re.sub(rf"{beside}(?:(?<=(?:\d|{beside}).)|(?=\d))", _beside_digits, text)
        expanding += expansions.keys() & set(text) - set(expanding)
    return replace(text, changed).lower(), "".join(expanding)


def replace(text: str, changed: Mapping[str, str]) -> str:
    """The text with each of these characters replaced."""
    if len(changed) > _MANY_CHARACTERS:
        return text.translate({ord(char): mark for char, mark in changed.items()})
    for char, mark in changed.items():
        text = text.replace(char, mark)
    return text


def _compose(found: re.Match[str]) -> str:
    composed = unicodedata.normalize("NFC", found[0])
    return composed.ljust(len(found[0]), "\u200d")  # invisible


def _beside_digits(found: re.Match[str]) -> str:
    """A compatibility form of digits never joins a digit: 10² is not 102, and 5½ is 5 1/2."""
    char, text = found[0], found.string
    mark = _marks[char]
    before, after = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
    raised = char.isdigit()  # superscripts, subscripts: several make one number
    joins = mark[0].isdigit() and before.isnumeric() and not (raised and before.isdigit() and not before.isdecimal())
    lead = KEPT["^" if raised else " "] if joins else ""
    expansion = lead + mark + (KEPT[" "] if mark[-1].isdigit() and after.isdecimal() else "")
    if len(expansion) == 1:
        return expansion
    private = _joined.get((expansion, char))
    if private is None:
        private = _joined[expansion, char] = chr(_PRIVATE + len(_joined))
        expansions[private] = expansion
    return private


def mark_of(char: str) -> str:
    """What one character is compared as."""
    if char in _SPECIAL:
        return _SPECIAL[char] or char
    category = unicodedata.category(char)
    if category == "Cf" or char in _INVISIBLE:
        return JOIN
    if category[0] in "ZC" or category == "Sk":
        return GAP
    if char < "\x80":
        return char
    plain = unicodedata.normalize("NFKC", char.casefold()).replace("\u2044", "/").lower()
    if plain == char:
        return GAP if category[0] == "P" else char
    if len(plain) == 1:
        return plain if plain < "\x80" else mark_of(plain)
    number = any(map(str.isdecimal, plain))
    return "".join(_part(part, number) for part in plain) or GAP


def _part(char: str, number: bool) -> str:
    """One character of what a compatibility form stands for: punctuation counts in a number only."""
    if char >= "\x80":
        return mark_of(char).replace(GAP, "")
    return char if char.isalnum() else KEPT.get(char, "") if number else ""
