"""Whether two words that differ are one word, misread, or two.

Optical character recognition and typing slips leave something that is no word. A difference between two words (`shall`
and `may`, `Licensor` and `Licensee`) changes the meaning, however alike they look.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources

from rapidfuzz.distance import OSA

Vouches = Callable[[str], bool]

_LONGEST = 40  # letters; longer ones are no words
_TWO_SLIPS = 6  # letters from which a word may have two slips of any kind
_MOST_SLIPS = 3  # where each of them is a letter that looks like the other, or stands twice
_NEGATING = ("un", "in", "im", "il", "ir", "dis", "non", "mis", "anti")
_NEGATIONS = frozenset(("not", "no", "nor", "never"))
_LETTERS_THAT_ARE_WORDS = ("a", "i")
_ROLES = (("or", "ee"), ("er", "ee"), ("or", "ees"), ("ors", "ees"), ("ers", "ees"))
_ORDINALS = ("st", "nd", "rd", "th")
_LOOK_ALIKE = str.maketrans("015689", "olsbbg")
# Letters by their shape: what is read as another one mostly has the same.
_SHAPES = str.maketrans("0ceao1ijtflr5s69gqynhubv8", "ooooolllllllssgggggnnnnnb")
_READ_AS_ONE = (("rn", "m"), ("vv", "w"), ("cl", "d"), ("ii", "u"), ("li", "h"), ("nn", "m"), ("ri", "n"))
_DIGITS = re.compile(r"\d")
_TWICE = re.compile(r"(.)\1+")


@cache
def known_words() -> frozenset[str]:
    """Words of contracts and everyday English, each seen in several documents: a longer list holds misspellings too."""
    text = resources.files(__package__).joinpath("words_en.txt").read_text("utf-8")
    return frozenset(text.split())


def slips(said: str, there: str, vouches: Vouches) -> int | None:
    """How many letters were misread between a quotation's word and the source's, or None where they are two words.

    `vouches` says whether a word stands in the source often enough to be one.
    """
    longest = max(len(said), len(there))
    if longest > _LONGEST:
        return None
    if min(len(said), len(there)) < 2:
        return 1 if {said, there} == {"a", "aa"} else None
    digits = _DIGITS.findall(said), _DIGITS.findall(there)
    if all(digits) and digits[0] != digits[1]:
        return None
    a, b = _as_letters(said), _as_letters(there)
    if a is None or b is None:
        return _misread_ordinal(said, there)
    if a != b and ((_is_word(said, vouches) and _is_word(there, vouches)) or _turned(a, b)):
        return None
    most = 2 if longest >= _TWO_SLIPS else 1
    distance = _distance(said, there, most)
    if distance > most and longest > _MOST_SLIPS and _look_the_same(a, b):
        most, distance = _MOST_SLIPS, OSA.distance(said, there, score_cutoff=_MOST_SLIPS)
    return distance if 0 < distance <= most else None


def respaced(one: Sequence[str], other: Sequence[str], vouches: Vouches) -> bool:
    """Whether the same letters with other spaces are other words: `notable` and `not able`. A space that was lost or
    added leaves something that is no word on one side, and never touches a negation (`cannot` apart)."""
    if [word for word in one if word in _NEGATIONS] != [word for word in other if word in _NEGATIONS]:
        return "cannot" not in (*one, *other)
    return all(_is_word(word, vouches) for word in (*one, *other))


def _is_word(word: str, vouches: Vouches) -> bool:
    if len(word) < 2:
        return word in _LETTERS_THAT_ARE_WORDS
    return word in known_words() or vouches(word)


def _as_letters(word: str) -> str | None:
    """The word with digits that look like letters read as such; None where it is no word of a script with letters."""
    if word.isalpha():
        return word if word[0] < "\u3040" else None
    plain = word.translate(_LOOK_ALIKE)
    letters = sum(map(str.isalpha, word))
    return plain if plain.isalpha() and 2 * letters >= len(word) and plain[0] < "\u3040" else None


def _misread_ordinal(said: str, there: str) -> int | None:
    """`20lh` for `20th`: the digits must be the same."""
    digits = len(said) - len(said.lstrip("0123456789"))
    a, b = said[digits:], there[digits:]
    if not digits or said[:digits] != there[:digits] or b[:1].isdigit() or not (a in _ORDINALS) ^ (b in _ORDINALS):
        return None
    return 1 if OSA.distance(a, b, score_cutoff=1) == 1 else None


def _look_the_same(a: str, b: str) -> bool:
    """Whether two words have the same shape, or differ in letters that stand twice only."""
    if _TWICE.sub(r"\1", a) == _TWICE.sub(r"\1", b):
        return True
    return _shape(a) == _shape(b)


def _shape(word: str) -> str:
    for pair, one in _READ_AS_ONE:
        word = word.replace(pair, one)
    return word.translate(_SHAPES)


def _turned(a: str, b: str) -> bool:
    """Whether one is the other's opposite or counterpart, or its plural."""
    short, long = sorted((a, b), key=len)
    if long.endswith(short) and long[: len(long) - len(short)] in _NEGATING:
        return True
    if long == short + "s" and not short.endswith("s"):
        return True
    return any(
        (a.endswith(one) and b.endswith(other) and a[: -len(one)] == b[: -len(other)])
        or (b.endswith(one) and a.endswith(other) and b[: -len(one)] == a[: -len(other)])
        for one, other in _ROLES
    )


def _distance(a: str, b: str, most: int) -> int:
    """Letters misread; a pair that is read as one letter counts once."""
    distance = OSA.distance(a, b, score_cutoff=most)
    if distance <= most:
        return distance
    for pair, one in _READ_AS_ONE:
        for wide, narrow in ((a, b), (b, a)):
            if pair in wide and one in narrow:
                rest = OSA.distance(wide.replace(pair, one, 1), narrow, score_cutoff=most - 1)
                if rest <= most - 1:
                    return rest + 1
    return most + 1
