"""Quotations made from real documents: true ones in another spelling, misread ones, and ones whose meaning was changed.

Every generator takes a span of a document and gives back a quotation, or None where the span does not hold what it
changes. All choices come from one seeded generator.
"""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

Alteration = Callable[[str, Random], str | None]
CONTRACTS = "cuad/contracts.jsonl.gz"
LAWS = "zh_laws/laws.jsonl.gz"


@dataclass(frozen=True)
class Document:
    """A text and spans of it that a person or a reader would quote."""

    text: str
    spans: tuple[str, ...]
    labelled: tuple[tuple[str, str], ...] = ()  # (field, span) as lawyers labelled them


def documents(name: str) -> list[dict]:
    """The documents of one collection; skips the test where they are absent."""
    for parent in Path(__file__).resolve().parents:
        path = parent / "shared" / "data" / name
        if path.exists():
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                return [json.loads(line) for line in lines]
    pytest.skip(f"the documents (shared/data/{name} beside the repository) are absent")


def held_out_contracts() -> list[Document]:
    """Every third contract: the word list was made from the others."""
    return [_contract(entry) for entry in documents(CONTRACTS)[2::3]]


def laws() -> list[Document]:
    """All laws, cut into clauses and sentences."""
    return [Document(entry["text"], tuple(_clauses(entry["text"]))) for entry in documents(LAWS)]


def _contract(entry: dict) -> Document:
    text = entry["text"]
    labelled = tuple(
        (field, span)
        for field, gold in entry["gold"].items()
        for span in gold["spans"]
        if span in text and span.strip()
    )
    sentences = re.findall(r"(?<=[.;:] )[A-Z\"(][^.;:]{40,400}[.;](?=\s)", text)
    return Document(text, tuple(span for _, span in labelled) + tuple(sentences), labelled)


def _clauses(text: str) -> Iterator[str]:
    for sentence in re.split(r"(?<=[。；])|\n+|<!--.*?-->", text):
        yield from (part for part in (sentence.strip(), *sentence.strip().split("，")) if 6 <= len(part) <= 300)


# --- alterations of the meaning, English ----------------------------------------------------------------------------


def swapped(*pairs: tuple[str, str]) -> Alteration:
    """One of the words becomes its counterpart; whole words only, any case."""
    table = dict(pairs) | {other: word for word, other in pairs}
    return replaced(table)


def replaced(table: dict[str, str]) -> Alteration:
    """One of the words becomes another."""
    pattern = re.compile(r"(?<![\w-])(" + "|".join(map(re.escape, table)) + r")(?![\w-])", re.IGNORECASE)

    def alter(span: str, random: Random) -> str | None:
        found = list(pattern.finditer(span))
        if not found:
            return None
        one = random.choice(found)
        new = table[one[0].lower()]
        return span[: one.start()] + (new.capitalize() if one[0][0].isupper() else new) + span[one.end() :]

    return alter


def inserted(word: str, after: str) -> Alteration:
    pattern = re.compile(rf"(?<!\w)({after})(?!\w)(?! {word})", re.IGNORECASE)

    def alter(span: str, random: Random) -> str | None:
        found = list(pattern.finditer(span))
        if not found:
            return None
        one = random.choice(found)
        return f"{span[: one.end()]} {word}{span[one.end() :]}"

    return alter


def removed(pattern: str) -> Alteration:
    """What the pattern matches is taken out of the middle."""
    compiled = re.compile(pattern, re.IGNORECASE)

    def alter(span: str, random: Random) -> str | None:
        found = [one for one in compiled.finditer(span) if one.start() > 0 and one.end() < len(span)]
        if not found:
            return None
        one = random.choice(found)
        return re.sub(r"  +", " ", f"{span[: one.start()]} {span[one.end() :]}").strip()

    return alter


def substituted(pattern: str, new: Callable[[re.Match, Random], str]) -> Alteration:
    compiled = re.compile(pattern)

    def alter(span: str, random: Random) -> str | None:
        found = list(compiled.finditer(span))
        if not found:
            return None
        one = random.choice(found)
        return span[: one.start()] + new(one, random) + span[one.end() :]

    return alter


def _other_digits(found: re.Match, random: Random) -> str:
    place = random.randrange(len(found[0]))
    while not found[0][place].isdigit():
        place = random.randrange(len(found[0]))
    digit = random.choice([digit for digit in "123456789" if digit != found[0][place]])
    return found[0][:place] + digit + found[0][place + 1 :]


NUMBER_WORDS = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "twelve",
    "fifteen",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "ninety",
]
STATES = [
    "California",
    "Delaware",
    "Texas",
    "Nevada",
    "Florida",
    "Michigan",
    "Iowa",
    "Ohio",
    "Illinois",
    "Georgia",
    "Utah",
    "Pennsylvania",
    "Massachusetts",
    "England",
    "Israel",
    "Spain",
    "Taiwan",
    "Ireland",
    "Canada",
    "Japan",
    "Germany",
    "France",
    "Netherlands",
    "Switzerland",
    "China",
    "Brazil",
    "Mexico",
]
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
PARTIES = [
    "Licensor",
    "Licensee",
    "Supplier",
    "Purchaser",
    "Buyer",
    "Seller",
    "Company",
    "Customer",
    "Franchisee",
    "Franchisor",
    "Distributor",
    "Consultant",
]
NAMES = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}(?= )")


def _other_of(words: list[str]) -> Alteration:
    pattern = r"(?<!\w)(?:" + "|".join(words) + r")(?!\w)"

    def new(found: re.Match, random: Random) -> str:
        return random.choice([word for word in words if word != found[0]])

    return substituted(pattern, new)


def other_name(names: list[str]) -> Alteration:
    """A capitalised word becomes another one of other documents."""
    return substituted(NAMES.pattern, lambda found, random: random.choice([name for name in names if name != found[0]]))


def roles_swapped(span: str, random: Random) -> str | None:
    present = [name for name in PARTIES if re.search(rf"(?<!\w){name}(?!\w)", span)]
    if len(present) < 2:
        return None
    one, other = random.sample(present, 2)
    swap = {one: other, other: one}
    return re.sub(rf"(?<!\w)(?:{one}|{other})(?!\w)", lambda found: swap[found[0]], span)


def point_moved(span: str, random: Random) -> str | None:
    found = list(re.finditer(r"\d+([.,])\d+", span))
    if not found:
        return None
    one = random.choice(found)
    number = one[0]
    if one[1] == ",":
        changed = random.choice([number.replace(",", "."), number.replace(",", ""), number + ",000"])
    else:
        whole, _, rest = number.partition(".")
        changed = random.choice([f"{whole}{rest[0]}.{rest[1:] or '0'}", whole + rest, f"{whole},{rest}"])
    return span[: one.start()] + changed + span[one.end() :]


def un_prefix(span: str, random: Random) -> str | None:
    words = list(re.finditer(r"(?<![\w-])[a-z]{5,}(?![\w-])", span))
    if not words:
        return None
    one = random.choice(words)
    prefix = random.choice(["un", "non-", "in", "dis", "non", "un-"])
    return span[: one.start()] + prefix + span[one.start() :]


def word_dropped(span: str, random: Random) -> str | None:
    words = span.split(" ")
    inner = [place for place in range(1, len(words) - 1) if words[place].isalpha()]
    if not inner:
        return None
    place = random.choice(inner)
    return " ".join(words[:place] + words[place + 1 :])


def word_added(span: str, random: Random) -> str | None:
    words = span.split(" ")
    if len(words) < 3:
        return None
    place = random.randrange(1, len(words))
    return " ".join(
        [
            *words[:place],
            random.choice(["not", "only", "also", "always", "sole", "prior", "written", "any", "no", "twice"]),
            *words[place:],
        ]
    )


def words_exchanged(span: str, random: Random) -> str | None:
    words = span.split(" ")
    places = [at for at in range(1, len(words) - 2) if words[at].isalpha() and words[at + 1].isalpha()]
    places = [at for at in places if words[at].lower() != words[at + 1].lower()]
    if not places:
        return None
    at = random.choice(places)
    words[at], words[at + 1] = words[at + 1], words[at]
    return " ".join(words)


ENGLISH: dict[str, Alteration] = {
    "not put in": inserted("not", "shall|will|may|is|are|must|has|have|be"),
    "not taken out": removed(r"\bnot\b"),
    "shall to may": replaced({"shall": "may", "will": "may", "must": "may", "may": "shall"}),
    "days to months": replaced({"days": "months", "months": "years", "years": "days", "day": "month", "year": "month"}),
    "currency": substituted(r"(?:US)?\$|€|£|USD|EUR", lambda found, random: "EUR " if found[0].endswith("$") else "$"),
    "place": _other_of(STATES),
    "month": _other_of(MONTHS),
    "number": substituted(r"\d[\d,.]*\d|\d", _other_digits),
    "number dropped": removed(r"(?<=\s)(?:\(\d+\)|\$?\d[\d,.]*)(?=\s)"),
    "point moved": point_moved,
    "number word": _other_of(NUMBER_WORDS),
    "and or": swapped(("and", "or")),
    "exception": removed(r",? (?:except|unless|provided|other than|subject to|excluding)\b[^,.;]{5,120}"),
    "prefix": un_prefix,
    "roles swapped": roles_swapped,
    "quantity": replaced(
        {"all": "some", "any": "no", "each": "either", "both": "neither", "most": "few", "least": "most", "every": "no"}
    ),
    "connective": replaced(
        {"if": "unless", "before": "after", "after": "before", "until": "from", "unless": "if", "prior": "subsequent",
         "with": "without", "without": "with", "less": "more", "more": "less", "than": "as", "from": "to"}
    ),
    "word dropped": word_dropped,
    "word added": word_added,
    "words exchanged": words_exchanged,
}  # fmt: skip


# --- alterations of the meaning, Chinese ----------------------------------------------------------------------------

HAN = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产"
HAN_NUMERALS = "一二三四五六七八九十百千万"


def han_changed(span: str, random: Random) -> str | None:
    places = [at for at, char in enumerate(span) if "\u4e00" <= char <= "\u9fff"]
    if not places:
        return None
    at = random.choice(places)
    return span[:at] + random.choice([char for char in HAN if char != span[at]]) + span[at + 1 :]


def han_dropped(span: str, random: Random) -> str | None:
    places = [at for at, char in enumerate(span) if "\u4e00" <= char <= "\u9fff"][1:-1]
    if not places:
        return None
    at = random.choice(places)
    return span[:at] + span[at + 1 :]


def han_added(span: str, random: Random) -> str | None:
    at = random.randrange(1, len(span))
    return span[:at] + random.choice(HAN) + span[at:]


def han_word(table: dict[str, str]) -> Alteration:
    return substituted("|".join(table), lambda found, random: table[found[0]])


CHINESE: dict[str, Alteration] = {
    "amount": substituted(
        f"[{HAN_NUMERALS}]", lambda found, random: random.choice([c for c in HAN_NUMERALS if c != found[0]])
    ),
    "ten times": substituted("[一二三四五六七八九](?=[万千百年月日])", lambda found, random: found[0] + "十"),
    "digit": substituted(r"\d", _other_digits),
    "must to must not": han_word({"应当": "不得", "可以": "应当", "不得": "应当", "必须": "可以"}),
    "above below": han_word({"以上": "以下", "以下": "以上", "以内": "以外", "以前": "以后", "以后": "以前"}),
    "not put in": substituted("(?<=[^，。；])(?=应|得|可|予|能|超|适|属|构|影)", lambda found, random: "不"),
    "not taken out": removed("(?<=[\u4e00-\u9fff])(?:不|未|无|非)"),
    "and or": han_word({"或者": "以及", "以及": "或者", "和": "或", "或": "和", "并": "或"}),
    "character": han_changed,
    "character dropped": han_dropped,
    "character added": han_added,
}


# --- other spellings of the same ------------------------------------------------------------------------------------


def every(pattern: str, choices: list[str], share: float = 0.5) -> Alteration:
    """Some of the matches, at least one, in another spelling."""
    compiled = re.compile(pattern)

    def alter(span: str, random: Random) -> str | None:
        found = list(compiled.finditer(span))
        if not found:
            return None
        chosen = {one.start() for one in found if random.random() < share} or {random.choice(found).start()}
        return compiled.sub(lambda one: random.choice(choices) if one.start() in chosen else one[0], span)

    return alter


def hyphenated(span: str, random: Random) -> str | None:
    places = [one.start() + one.end() >> 1 for one in re.finditer(r"[a-z]{6,}", span)]
    if not places:
        return None
    at = random.choice(places)
    return span[:at] + random.choice(["-", "-", "\u00ad", "\u2010"]) + "\n" + span[at:]


LIGATURES = (
    ("ffi", "\ufb03"),
    ("ffl", "\ufb04"),
    ("ff", "\ufb00"),
    ("fi", "\ufb01"),
    ("fl", "\ufb02"),
    ("st", "\ufb06"),
)


def ligatures(span: str, random: Random) -> str | None:
    changed = span
    for letters, form in LIGATURES:
        changed = changed.replace(letters, form)
    return changed if changed != span else None


def decomposed(span: str, random: Random) -> str | None:
    changed = unicodedata.normalize("NFD", span)
    return changed if changed != span else None


FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
HALF_WIDTH = str.maketrans("，。；：（）！？、“”", ',.;:()!?,""')


def markdown(span: str, random: Random) -> str | None:
    mark = random.choice(["**", "__", "*", "_", "`", "~~", "***"])
    words = span.split(" ")
    if len(words) < 3 or random.random() < 0.4:
        return f"{mark}{span}{mark}"
    at = random.choice([at for at, word in enumerate(words) if word])
    words[at] = f"{mark}{words[at]}{mark}"
    return " ".join(words)


def html(span: str, random: Random) -> str | None:
    tag = random.choice(["b", "i", "em", "strong", "p", "span", "u", "div"])
    attribute = random.choice(["", "", ' class="x"'])
    words = span.split(" ")
    at = random.choice([at for at, word in enumerate(words) if word])
    words[at] = f"<{tag}{attribute}>{words[at]}</{tag}>"
    return " ".join(words).replace("&", "&amp;")


def in_quotes(span: str, random: Random) -> str:
    opened, closed = random.choice(
        [('"', '"'), ("\u201c", "\u201d"), ("'", "'"), ("\u00ab", "\u00bb"), ("\u300c", "\u300d")]
    )
    return opened + span + closed


SAME: dict[str, Alteration] = {
    "white space": every(" ", ["  ", "\t", "\u00a0", " \u200b", "\u2003"]),
    "line breaks": every(" ", ["\n", "\r\n", "\n\n", " \n   "]),
    "hyphenated line ends": hyphenated,
    "quotes": every("[\"'\u2018\u2019\u201c\u201d]", ["\u201c", '"', "\u2019", "'", "\u201d"]),
    "dashes": every("(?<=[a-z])-(?=[a-z])|\u2013|\u2014", ["\u2013", "\u2014", "\u2010", "\u2212", "\u2011"]),
    "ligatures": ligatures,
    "decomposed": decomposed,
    "full width": lambda span, random: span.translate(FULL_WIDTH),
    "full-width digits": every(r"\d", ["0"]),  # replaced below: it must keep the digit
    "capitals": lambda span, random: span.upper(),
    "small letters": lambda span, random: span.lower(),
    "markdown": markdown,
    "html": html,
    "quotation marks around": in_quotes,
}


def _wide_digits(span: str, random: Random) -> str | None:
    return re.sub(r"\d", lambda found: chr(ord(found[0]) + 0xFEE0), span) if re.search(r"\d", span) else None


SAME["full-width digits"] = _wide_digits

SAME_CHINESE: dict[str, Alteration] = {
    "white space": lambda span, random: _between_han(span, random, [" ", "\u3000", "\u200b", "\t"]),
    "line breaks": lambda span, random: _between_han(span, random, ["\n", "\n\u3000\u3000", "\r\n"]),
    "half-width punctuation": lambda span, random: _if_changed(span, span.translate(HALF_WIDTH)),
    "full-width digits": _wide_digits,
    "quotes": every("[\u201c\u201d\u300a\u300b]", ['"', "\u300c", "\u300d", ""]),
    "decomposed": decomposed,
    "quotation marks around": in_quotes,
    "markdown": lambda span, random: random.choice(["**", "__", "`"]).join(["", span, ""]),
    "html": lambda span, random: f"<p>{span}</p>",
}


def _if_changed(span: str, changed: str) -> str | None:
    return changed if changed != span else None


def _between_han(span: str, random: Random, marks: list[str]) -> str | None:
    numeral = HAN_NUMERALS + "0123456789０１２３４５６７８９.,%"
    places = [at for at in range(1, len(span)) if not (span[at - 1] in numeral and span[at] in numeral)]
    if not places:
        return None
    for at in sorted(random.sample(places, min(len(places), 3)), reverse=True):
        span = span[:at] + random.choice(marks) + span[at:]
    return span


# --- misread letters ------------------------------------------------------------------------------------------------

LOOK_ALIKE = {
    "rn": ["m"], "m": ["rn"], "cl": ["d"], "d": ["cl"], "vv": ["w"], "w": ["vv"], "l": ["1", "I", "i"], "I": ["l", "1"],
    "i": ["l", "1", "j"], "O": ["0"], "o": ["0", "c"], "e": ["c", "o"], "c": ["e", "o"], "h": ["b", "li"], "b": ["h"],
    "u": ["n", "ii"], "n": ["u", "ri"], "t": ["f", "l"], "f": ["t"], "a": ["o", "e"], "s": ["5"], "S": ["5"],
    "B": ["8"], "g": ["q", "9"], "y": ["v"], "v": ["y"], "r": ["t"], "E": ["F"], "G": ["6"], "T": ["I"],
}  # fmt: skip
_CONFUSABLE = re.compile("rn|cl|vv|" + "[" + "".join(key for key in LOOK_ALIKE if len(key) == 1) + "]")


def noisy(kind: str, rate: float = 0.02) -> Alteration:
    """Letters misread at a rate, one at least."""

    def alter(span: str, random: Random) -> str | None:
        places = list((_CONFUSABLE if kind == "visual" else re.compile("[A-Za-z]")).finditer(span))
        if not places:
            return None
        letters = sum(map(str.isalpha, span))
        hits = max(1, sum(random.random() < rate for _ in range(letters)))
        for one in sorted(random.sample(places, min(hits, len(places))), key=lambda one: -one.start()):
            new = {
                "visual": lambda one=one: random.choice(LOOK_ALIKE[one[0]]),
                "random": lambda one=one: random.choice(
                    [c for c in "abcdefghijklmnopqrstuvwxyz" if c != one[0].lower()]
                ),
                "doubled": lambda one=one: one[0] * 2,
                "dropped": lambda one=one: "",
            }[kind]()
            span = span[: one.start()] + new + span[one.end() :]
        return span

    return alter


def plain(text: str) -> str:
    """Letters and digits only, without case and marks: what is left when spelling counts for nothing."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    return "".join(char for char in folded if char.isalnum())
