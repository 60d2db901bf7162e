"""Copyright holders and years, from lines that state a copyright and not from sentences that speak about one."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_HOLDERS = 20
MAX_YEARS = 30
_MAX_LINE = 400  # characters of a line that are looked at: minified files have lines of 100 kB
_MAX_NAME = 120

_MAX_CONTINUED = 4  # lines that one statement may go over

_MARKED = re.compile(r"(?i)copyright|©|\(c\)")
_STATEMENT = re.compile(
    r"""(?ix)^[\s>*\#/;:.\-=|'"`{}\\]{0,40}(?:i\.e\.,\s{0,4})?"?
    (?:(?:portions|modifications|parts)\ )?(?:are\ )?
    (?:copyrights?(?:\ is)?\s{0,4}:?(?:\s{0,8}(?:\([ci]\)|©|&copy;)){0,3}|\(c\)(?=\s{0,4}(?:19|20)\d\d)|©)
    (?P<rest>[\s,:0-9\w].*)$"""
)
_YEARS_FIRST = re.compile(r"(?i)^[\s\w.\-#*]{0,20}(?P<rest>(?:19|20)\d\d[\d\s,\-–]{0,80})\(c\)(?P<name>.+)$")
_YEAR = re.compile(r"(?<![\d.\w])(?:19[5-9]\d|20\d\d)(?![\d])")
_YEAR_RUN = re.compile(
    r"(?i)(?<![\w.])(?:19|20)[\dx]{2}(?:\s{0,4}(?:[,\-–—/&]|to|and)\s{0,4}(?:(?:19|20)?[\dx]{2}\b|present|now|today))*"
    r"[\s,:\-–—]*(?:to present\b|present\b|now\b)?"
)
# What follows the word "copyright" in licence prose.
_PROSE = re.compile(
    r"(?i)^\W*(?:notices?|holders?|owners?|licen[cs]es?|laws?|statements?|interests?|and|or|in|of|to|is|are|as|on|"
    r"under|this|that|which|claims?|line|treat\w+|protect\w+|disclaimer|permission|doctrines?|comments?|may|also|"
    r"infringement|symbols?|information|info|year|date|file|see|with|for|yyyy|19yy|its|terms?|policy|status|header\w*|"
    r"belongs|remains|assign\w+|transfer\w*|remarks?|ownership|work|free|when)\b"
)
_PLACEHOLDER = re.compile(r"(?i)[\[<{](?:yyyy|year|name|fullname|copyright|author|owner|one line|your)|\$copyright")
_UNFINISHED = re.compile(r"(?i)(?:[,;&]|\band|\bor|\bby|\ball)\s*$")
_ASIDE = re.compile(
    r"<[^<>]{0,120}>|\((?:see|rather|https?|[^()@\s]{1,60}@)[^()]{0,120}\)|\]\([^()]{0,200}\)|https?://\S+"
    r"|\[[^\[\]]{0,60}\](?!\()"
)
_TAIL = re.compile(
    r"(?i)[,;\s]{0,6}(?:\ball rights(?: reserved)?.*|\bsee (?:the )?(?:authors|contributors)\b.*"
    r"|\. (?:it|this|these|they|see|licensed|used|permission|redistribution|the|everyone)\b.*"
    r"|\b(?:and|is) (?:is )?licensed\b.*)$"
)
_LEAD = re.compile(r"(?i)^(?:by|\(c\)|©|to present|present|on behalf of)(?:\s|,)+")
_TRAIL = re.compile(r"(?i)(?:\s+(?:or|and|by)|,)$")
_ABBREVIATED = re.compile(r"\b(?:Inc|Ltd|Corp|Co|al|Jr|Sr|[A-Z])\.$")
_EDGE = " \t\r,;:-–—*_`'\"|#/\\[]{}"
_COMMENT = " \t\r>*#/;"
_LICENCE_OWN = re.compile(r"(?i)everyone is permitted to copy")


def copyright_lines(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of (part with the years, part with the names) of each statement, in order.

    The copyright of a licence's own wording (GNU and Artistic licences open with one) is passed over: the sentence
    after it says that everyone may copy the document.
    """
    lines = text.split("\n")
    for number, whole_line in enumerate(lines):
        line = whole_line[:_MAX_LINE]
        if not _MARKED.search(line) or _PLACEHOLDER.search(line):
            continue
        if any(_LICENCE_OWN.search(following) for following in lines[number : number + 4]):
            continue
        swapped = _YEARS_FIRST.match(line)
        stated = None if swapped else _STATEMENT.match(line)
        if swapped:
            yield swapped["rest"], swapped["name"]
        elif stated and not _PROSE.match(stated["rest"]):
            statement = _continued(stated["rest"], lines[number + 1 : number + 1 + _MAX_CONTINUED])
            yield statement, statement


def _continued(statement: str, following: list[str]) -> str:
    """The statement with the lines that it goes on in: after a comma, or up to "all rights reserved"."""
    for line in following:
        goes_on = _UNFINISHED.search(statement) or "all rights" in line.lower()
        if not goes_on or _MARKED.search(line) or not line.strip() or "all rights" in statement.lower():
            break
        statement = f"{statement} {line.strip(_COMMENT)[:_MAX_LINE]}"
    return statement


def _names(part: str) -> Iterator[str]:
    for piece in _YEAR_RUN.split(part):
        name = _TAIL.sub("", " ".join(_ASIDE.sub(" ", piece).split())).strip(_EDGE)
        name = _trim_stop(_TRAIL.sub("", _LEAD.sub("", name)).strip(_EDGE))
        if 1 < len(name) <= _MAX_NAME and any(char.isalpha() for char in name):
            yield name


def _trim_stop(name: str) -> str:
    while name.endswith(".") and not _ABBREVIATED.search(name):
        name = name[:-1].rstrip(_EDGE)
    return name


def holders_and_years(text: str) -> tuple[list[str], list[int]]:
    """Holders in order of first appearance, at most MAX_HOLDERS; years ascending, at most MAX_YEARS (the first seen).

    A range counts by its two ends; an open range ("2015-present") by its start. "All rights reserved", addresses and
    pointers to an AUTHORS file are not part of a name.
    """
    holders: dict[str, None] = {}
    years: dict[int, None] = {}
    for years_part, names_part in copyright_lines(text):
        years.update((int(year), None) for year in _YEAR.findall(years_part))
        holders.update((name, None) for name in _names(names_part))
        if len(holders) >= MAX_HOLDERS and len(years) >= MAX_YEARS:
            break
    return list(holders)[:MAX_HOLDERS], sorted(list(years)[:MAX_YEARS])
