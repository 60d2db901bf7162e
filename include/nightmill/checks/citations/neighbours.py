"""What a character is compared as because of those beside it: markup, blanks, elisions, hyphens, numbers.

Every replacement is as long as what it replaces, and every pattern is linear: none has a repetition inside another.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from nightmill.checks.citations.characters import BLANK, ELISION, GAP, JOIN, KEPT, LETTER, OTHER_KEPT, mark_of

_INLINE_TAGS = "a|abbr|b|big|cite|code|del|em|font|i|ins|kbd|mark|q|s|small|span|strike|strong|tt|u"
_BLOCK_TAGS = (
    "address|article|blockquote|br|caption|center|dd|div|dl|dt|h[1-6]|hr|img|li|ol|p|pre|section|sub|sup|table|tbody|td|"
    "tfoot|th|thead|tr|ul"
)
_TAG = re.compile(rf"</?(?:({_INLINE_TAGS})|{_BLOCK_TAGS})(?: ?/?|[ \n][^<>=]{{0,60}}+=[^<>]{{0,300}}+)>")
_COMMENT = re.compile(r"<!--[^<>]{0,300}-->")
_ENTITY = re.compile(
    r"&(?:amp|lt|gt|quot|apos|nbsp|ldquo|rdquo|lsquo|rsquo|ndash|mdash|shy|sect|#\d{2,5}|#x[0-9a-f]{2,4});"
)
_ENTITIES: Final = {
    "amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "nbsp": " ", "ldquo": '"', "rdquo": '"', "lsquo": "'",
    "rsquo": "'", "ndash": "-", "mdash": "-", "shy": JOIN, "sect": "§",
}  # fmt: skip
_ELISIONS = re.compile(rf"(?:\.\.\.|\. \. \.|{ELISION})[. {ELISION}]*+")
_REDACTION = re.compile(r"\[[ .]{0,9}[*_x][*_x .]{0,60}\]")
_MARKS_IN_A_ROW = re.compile(r"__++|\*\*++")
_INSIDE_WORD = re.compile(rf"[-'\"](?<=[{LETTER}][-'\"])(?={JOIN}{{0,9}}[{LETTER}])")
_LINE_HYPHEN = re.compile(rf"-(?<=[{LETTER}]-)[ {JOIN}]{{0,9}}\n[ \n{JOIN}]*+(?=[{LETTER}])")
_SOFT_LINE_HYPHEN = re.compile(rf"{JOIN}(?<=[{LETTER}]{JOIN}) ?\n[ \n{JOIN}]*+(?=[{LETTER}])")
_CURRENCY = "$£€¥"
_BEFORE_DIGIT = re.compile(
    rf"[-~#.,(\[](?:(?<=[(\[])(?=[ \n]{{0,3}}[-~.,+<>={_CURRENCY}]{{0,2}}[ \n]?[0-9])"
    rf"|(?<=[-~#.,])(?<![0-9{LETTER}).,\-_~#].)(?=[{_CURRENCY}]?[0-9]))"
)
_AFTER_DIGIT = re.compile(rf"[0-9%](?:[^0-9{LETTER}$%&@+<>=]++(?=[0-9])|[ \n{JOIN}]{{0,3}}[)\]])")
_QUOTES_BETWEEN = re.compile("[\"'`*_]+")
_MINUS_BETWEEN = re.compile(r"[ \n]*-[ \n]+")
_BLANKS = re.compile(r"[ \n]+")
_NEAR: Final = 40  # characters beside emphasis that may be a tag


def mark_neighbours(marked: str) -> str:
    """The text, marked character by character, with what depends on neighbours."""
    if "<" in marked:
        marked = _TAG.sub(_untag, marked)
        if "<!--" in marked:
            marked = _COMMENT.sub(_blank_out, marked)
    if "&" in marked and ";" in marked:
        marked = _ENTITY.sub(_plain_entity, marked)
    if "..." in marked or ". . ." in marked or ELISION in marked:
        marked = _ELISIONS.sub(_as_elision, marked)
    if "[" in marked:
        marked = _REDACTION.sub(_as_blank, marked)
    if "__" in marked or "**" in marked:
        marked = _MARKS_IN_A_ROW.sub(_Emphasis().blank_or_gap, marked)
    marked = _INSIDE_WORD.sub(JOIN, marked)
    if "-\n" in marked or "- \n" in marked:
        marked = _LINE_HYPHEN.sub(_joined_letters, marked)
    if f"{JOIN}\n" in marked or f"{JOIN} \n" in marked:
        marked = _SOFT_LINE_HYPHEN.sub(_joined_letters, marked)
    marked = _BEFORE_DIGIT.sub(_kept, marked)
    return _AFTER_DIGIT.sub(_kept_after_digit, marked)


def _untag(found: re.Match[str]) -> str:
    return (JOIN if found[1] else GAP) * len(found[0])


def _blank_out(found: re.Match[str]) -> str:
    return GAP * len(found[0])


def _plain_entity(found: re.Match[str]) -> str:
    name = found[0][1:-1]
    if name in _ENTITIES:
        char = _ENTITIES[name]
    else:
        code = int(name[2:], 16) if name[1] == "x" else int(name[1:])
        char = mark_of(chr(code)) if not 0xD800 <= code < 0xE000 else GAP
        char = char.lower() if len(char) == 1 else GAP
    return char + JOIN * (len(found[0]) - 1)


def _as_elision(found: re.Match[str]) -> str:
    return ELISION.ljust(len(found[0]), GAP)


def _as_blank(found: re.Match[str]) -> str:
    return BLANK.ljust(len(found[0]), GAP)


class _Emphasis:
    """Up to three marks that open before a word and close after one are emphasis; others are a blank to fill in, or a
    redaction."""

    def __init__(self) -> None:
        self._open = ""

    def blank_or_gap(self, found: re.Match[str]) -> str:
        before = found.string[max(found.start() - _NEAR, 0) : found.start()].rstrip(JOIN)[-1:]
        after = found.string[found.end() : found.end() + _NEAR].lstrip(JOIN)[:1]
        if len(found[0]) <= 3:
            if self._open == found[0] and not before.isspace():
                self._open = ""
                return GAP * len(found[0])
            if after.strip(" \n,.;:/)]"):
                self._open = found[0]
                return GAP * len(found[0])
        return _as_blank(found)


def _joined_letters(found: re.Match[str]) -> str:
    return JOIN * len(found[0])


def _kept(found: re.Match[str]) -> str:
    return KEPT[found[0]]


def _kept_after_digit(found: re.Match[str]) -> str:
    text, end = found[0], found.end()
    if found.string[end : end + 1].isdecimal():
        return text[0] + _kept_gap(text[1:])
    return text[:-1] + KEPT[text[-1]]


@lru_cache(maxsize=4096)
def _kept_gap(gap: str) -> str:
    body = gap.replace(JOIN, "").replace("\n", " ")
    if not body:
        return gap
    if len(body) > 1:
        body = _MINUS_BETWEEN.sub("-", _BLANKS.sub(" ", _QUOTES_BETWEEN.sub("", body)))
    kept = "".join(KEPT.get(char, char if char < GAP else OTHER_KEPT) for char in body or " ")
    return kept.ljust(len(gap), GAP)
