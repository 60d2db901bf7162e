"""Whether a place where a quotation was found ends where the meaning allows it.

`limited` stands in `unlimited`, `000` in `1,000`, `5` in `5.1` and `十万` in `五十万`; `within thirty.` is not what
`within thirty (30) days, except ...` says. A cut word is accepted, because labelled spans do cut words; a cut negation,
number or exception is not.
"""

from __future__ import annotations

import re
from typing import Final

_BEFORE: Final = 24  # characters of the source that are looked at
_AFTER: Final = 64
_WORD: Final = 16
_SPACE: Final = " \t\r\n\u00a0\u2002\u2003\u2009\u200b\u202f\u3000\u00ad\ufeff"
_MARKS: Final = (
    _SPACE + ".,;:!?'\"`\u00b4‘’‚“”„«»-\u2010\u2011\u2012\u2013\u2014…()[]{}*_|~#>\\"
    "、。，；：！？（）【】《》「」『』．［］"
)
_SAME_MARK: Final = str.maketrans(
    "‘’‚\u00b4`“”„«»\u2010\u2011\u2012\u2013\u2014、。，；：！？（）【】．［］",
    "'''''\"\"\"\"\"-----,.,;:!?()[].[]",
)
_STOPS: Final = frozenset(".;!?")

_TENS = "twenty|thirty|forty|fourty|fifty|sixty|seventy|eighty|ninety"
_UNITS = "one|two|three|four|five|six|seven|eight|nine"
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_SCALES = "hundred|thousand|million|billion|trillion"
_NUMBER_WORD = f"(?:{_TENS}|{_UNITS}|{_TEENS}|{_SCALES})"
_HAN_NUMERALS: Final = "零〇一二三四五六七八九十百千万萬亿億两兩廿卅壹贰叁肆伍陆柒捌玖拾佰仟"
_HAN_SCALES: Final = "十百千万萬亿億"
_HAN_NEGATIONS: Final = "不非未无無勿没沒莫毋"
_GAP = r"[-\u2010\u2011\u2012\u2013\s\u00a0]{1,3}"
_EXCEPTION = (
    "except|excluding|exclusive of|unless|provided|other than|but|save|subject to|however|if|only|until|without|"
    "但|除|另有|不包括|不含|以外|之外|的除外"
)

_NEGATING_PREFIXES = frozenset(("un", "in", "im", "il", "ir", "dis", "non", "mis", "anti"))
_HYPHENATED_NEGATION = re.compile(
    r"(?<![a-z])(?:(?:un|non|dis|mis|anti)[-\u00ad\u2010\u2011\u2012\u2013]\s*|(?:in|im|il|ir)[-\u00ad\u2010]\s*\n\s*|non\s+)$"
)
_NEGATING_SUFFIX = re.compile("(?:not|less)(?![a-z])|n?['’]t(?![a-z])")
_TENS_BEFORE = re.compile(rf"(?:^|[^a-z])(?:{_TENS}){_GAP}$")
_NUMBER_BEFORE = re.compile(rf"(?:(?:^|[^a-z]){_NUMBER_WORD}|[0-9]){_GAP}$")
_UNIT_WORDS = frozenset(_UNITS.split("|"))
_TENS_WORDS = frozenset(_TENS.split("|"))
_SCALE_WORDS = frozenset(_SCALES.split("|"))
_NUMBER_WORDS = _UNIT_WORDS | _TENS_WORDS | _SCALE_WORDS | frozenset(_TEENS.split("|"))
_NUMBERS_BEGIN = frozenset(word[:3] for word in _NUMBER_WORDS)
_NUMBERS_END = frozenset(word[-3:] for word in _NUMBER_WORDS)
_SUFFIXES_BEGIN = frozenset("nl'’")
_MAY_NEGATE = ("non", "-", "\u00ad", "\u2010", "\u2011", "\u2012", "\u2013")

_OPENING = re.compile(r"[^\"'(\[]")  # what does not open a quotation or bracket
_LEADING_ZEROS = re.compile(r"(?:^|[^0-9.,:])0+$")
_SIGN_BEFORE = re.compile(r"(?:^|[\s(\[$£€¥])(?:[-+\u2212\u2013－~.,]|[<>≤≥±]\s?)[$£€¥]?$")
_NUMBER_GOES_ON = re.compile(
    rf"[.,:'’\u00b7]?\d|\s?[%‰％]|[-\s\u00a0]{{0,2}}(?:percent|per\s?cent|{_SCALES})(?![a-z])"
    rf"|(?:k|mm?|bn?)(?![a-z])|\s?[{_HAN_SCALES}]|[½¼¾²³]"
)
_UNIT_FOLLOWS = re.compile(rf"{_GAP}(?:{_UNITS})(?![a-z])")
_SCALE_FOLLOWS = re.compile(rf"{_GAP}(?:{_SCALES}|percent|per cent)(?![a-z])")
_GOES_ON = re.compile(
    r"[\s,:(\[\"'“”‘’（，：、\u00a0]{0,8}"
    rf"(?:[$£€¥]?\s?[.,]?\d|{_NUMBER_WORD}(?![a-z])|[{_HAN_NUMERALS}]|[;；\s]{{0,3}}(?:{_EXCEPTION})(?![a-z]))"
)


def clean_start(source: str, start: int) -> bool | None:
    """Whether a quotation may begin with source[start], its first compared character. None where it may and cuts a
    word."""
    if start == 0:
        return True
    before = source[max(0, start - _BEFORE) : start].lower()
    first = source[start : start + _WORD].lower()
    char = first[0]
    if char.isdigit():
        return _number_starts(before)
    if char in ".,":
        return not before[-1].isdigit()
    if "㐀" <= char <= "鿿":
        return _han_starts(before, char)
    if not char.isalpha():
        return True
    last = before[-1]
    if not last.isalnum() and before.rstrip().endswith(_MAY_NEGATE) and _HYPHENATED_NEGATION.search(before):
        return False
    if last.isalpha() and last < "\u3040":
        letters = before[len(before.rstrip("abcdefghijklmnopqrstuvwxyz")) :]
        return False if letters in _NEGATING_PREFIXES else None
    if first[:3] not in _NUMBERS_BEGIN:
        return True
    word = first.split(None, 1)[0].rstrip(_MARKS)
    if word in _UNIT_WORDS and _TENS_BEFORE.search(before):
        return False
    return not (word in _SCALE_WORDS and _NUMBER_BEFORE.search(before))


def _number_starts(before: str) -> bool:
    last = before[-1]
    if last.isdigit():
        return bool(_LEADING_ZEROS.search(before))
    if last in ".,:'’\u00b7" and len(before) > 1 and before[-2].isdigit():
        return False
    return not _SIGN_BEFORE.search(before) and not before.endswith("分之")


def _han_starts(before: str, char: str) -> bool:
    last = before[-1]
    if char in _HAN_NUMERALS:
        number = last in _HAN_NUMERALS or (char in _HAN_SCALES and last.isdigit())
        return not number and not before.endswith("分之")
    return last not in _HAN_NEGATIONS


def clean_end(source: str, end: int, tail: str) -> bool | None:
    """Whether a quotation may end with source[end - 1], its last compared character, where it goes on with the marks
    `tail`. None where it may and cuts a word."""
    after = source[end : end + _AFTER].lower()
    last = source[max(0, end - _WORD) : end].lower()
    char = last[-1]
    if not _ends_as_said(after, tail):
        return False
    if char.isdigit():
        return not _NUMBER_GOES_ON.match(after)
    if "㐀" <= char <= "鿿":
        return not (char in _HAN_NUMERALS and after[:1] and after[0] in _HAN_NUMERALS)
    if not char.isalpha():
        return True
    if after[:1] in _SUFFIXES_BEGIN and _NEGATING_SUFFIX.match(after):
        return False
    if after[:1].isalpha() and after[0] < "\u3040":
        return None
    if last[-3:] not in _NUMBERS_END:
        return True
    word = last.rsplit(None, 1)[-1].lstrip(_MARKS)
    if word in _TENS_WORDS and _UNIT_FOLLOWS.match(after):
        return False
    return not (word in _NUMBER_WORDS and _SCALE_FOLLOWS.match(after))


def _ends_as_said(after: str, tail: str) -> bool:
    """False where the source goes on with a number or an exception, after a closing stop that it does not have, or
    after an open or empty bracket."""
    if not tail or (after.startswith(tail) and "(" not in tail and "[" not in tail and "（" not in tail):
        return True
    marks = tail.translate(_SAME_MARK)
    invented = marks[same_marks(after, marks)[1] :]
    if _STOPS.intersection(invented) and _GOES_ON.match(after):
        return False
    if "(" not in marks and "[" not in marks:
        return True
    rest = after[same_marks(after, marks[: max(marks.find("("), marks.find("[")) + 1])[0] :]
    closed = marks.rstrip(" ")[-1:] in (")", "]") and not invented
    return closed or not _GOES_ON.match(rest)


def same_marks(text: str, marks: str) -> tuple[int, int]:
    """How much of the start of `text` is said by `marks`, and how much of the marks: white space apart."""
    there = said = 0
    while said < len(marks):
        if marks[said] in _SPACE:
            said += 1
            continue
        place = there
        while place < len(text) and text[place] in _SPACE:
            place += 1
        if place >= len(text) or text[place].translate(_SAME_MARK) != marks[said]:
            break
        there, said = place + 1, said + 1
    return there, said


def head_of(quote: str) -> str:
    """The marks before a quotation's first word; a sign or bracket that touches a number is part of it."""
    if quote[0].isalpha():
        return ""
    size = len(quote) - len(quote.lstrip(_MARKS))
    if size < len(quote) and quote[size].isdigit():
        size = len(quote[:size].rstrip("-\u2013.,~(["))
    return quote[:size]


def tail_of(quote: str) -> str:
    """The marks after a quotation's last word."""
    if quote[-1].isalnum():
        return ""
    return quote[len(quote.rstrip(_MARKS)) :]


def widened(source: str, start: int, end: int, quote: str) -> tuple[int, int]:
    """The place with the marks around it that the quotation has too."""
    before = source[max(0, start - _BEFORE) : start][::-1]
    head = _OPENING.sub("", head_of(quote).translate(_SAME_MARK))[::-1]
    tail = tail_of(quote).translate(_SAME_MARK).replace("...", "").replace("…", "")
    return start - same_marks(before, head)[0], end + same_marks(source[end : end + _AFTER], tail)[0]
