"""A rule-based reader of licence texts: the model behind the demo job.

It gets what any model would get, the user message, and reads the document in it: no file names, no metadata, no
look-up of answers. It knows licences by their characteristic sentences and by the names that texts call them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dev.practice_provider.models.licence_copyright import holders_and_years
from dev.practice_provider.models.licence_signatures import (
    ANCHORS,
    NAME,
    NAME_PATTERNS,
    PATENT_GRANTS,
    SIGNATURES,
    WARRANTY_DISCLAIMERS,
    Signature,
    gnu_id,
)

OPEN_LINE = "<document>"
CLOSE_LINE = "</document>"
MAX_EVIDENCE = 300
NEAR = 1500  # folded characters before a full text in which a statement is an introduction to it

_GNU = {"GPL", "LGPL", "AGPL"}
_GNU_FULL = re.compile(r"^(?:GPL|LGPL|AGPL|GFDL)-[\d.]+$")
_WORD = re.compile(r"[^\W_]+\+?")
_SPDX_TAG = re.compile(r"SPDX-License-Identifier:\s{0,4}\(?([A-Za-z0-9][A-Za-z0-9.\-]{1,40}\+?)")
_HEADING = re.compile(
    r"(?im)^[#=* \t]{0,8}(?:licen[cs](?:e|es|ing)(?: information| terms)?|copyright (?:and|&) licen[cs]e)"
    r"[ \t\r#:*]{0,6}$"
)
# A licence's name right after one of these, bar fillers, is the licence of what the text speaks about.
_TRIGGER = re.compile(
    r" (?:under|subject to|found in|terms of|covered by|licen[cs]e[ds]?|licensed as|released as|free software)(?= )"
)
_FILLERS = frozenset(
    (
        *("a", "an", "the", "its", "it", "one", "own", "all", "any", "both", "either", "following", "same", "this"),
        *("and", "or", "of", "to", "in", "at", "as", "is", "under", "used", "your", "choice", "copy", "dual"),
        *("terms", "conditions", "license", "licence", "licenses", "licences", "standard", "classic", "popular"),
        *("approved", "osi", "open", "source", "free", "public", "permissive", "liberal", "simple", "very"),
    )
)
_MAX_FILLERS = 9
_MAX_HEADINGS = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """A licence that the text shows or names, and the folded range that says so."""

    spdx_id: str
    start: int
    end: int


class FoldedText:
    """A text as lower-case words with single spaces, and the way back from there to the original characters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.folded = f" {' '.join(_WORD.findall(text)).lower()} "

    def position(self, offset: int) -> int:
        """The folded position of the space before the first word at or after the original `offset`."""
        before = " ".join(_WORD.findall(self.text[:offset])).lower()
        return len(before) + 1 if before else 0

    def span(self, start: int, end: int) -> str:
        """The original characters of the folded range, cut after whole words to MAX_EVIDENCE characters.

        `start` and `end` may point at the spaces around the words.
        """
        first = self.folded.count(" ", 0, start + 1) - 1
        last = self.folded.count(" ", 0, max(start + 1, end - 1)) - 1
        words = list(islice(_WORD.finditer(self.text), max(first, 0), max(last, first, 0) + 1))
        if not words:
            return first_line(self.text)
        begin = words[0].start()
        while len(words) > 1 and words[-1].end() - begin > MAX_EVIDENCE:
            words.pop()
        return self.text[begin : min(words[-1].end(), begin + MAX_EVIDENCE)]


def read_licence(text: str) -> dict[str, Any]:
    """What the demo's schema asks for, read from the document inside a user message. Never raises.

    `text` is the message as sent; without document lines the whole message is the document. `spdx_id` is None where
    the document neither contains a licence text nor names one definitely ("BSD license" alone leaves it open).
    """
    document = find_document(text)
    folded = FoldedText(document)
    found = primary_licence(folded)
    holders, years = holders_and_years(document)
    return {
        "spdx_id": found.spdx_id if found else None,
        "copyright_holders": holders,
        "copyright_years": years,
        "grants_patent_licence": any(phrase in folded.folded for phrase in PATENT_GRANTS),
        "disclaims_warranty": any(phrase in folded.folded for phrase in WARRANTY_DISCLAIMERS),
        "evidence": folded.span(found.start, found.end) if found else first_line(document),
    }


def find_document(text: str) -> str:
    """What stands between the first `<document>` line and the last `</document>` line.

    The instructions hold no such lines, so a document that contains them comes out whole.
    """
    opened = f"\n{text}".find(f"\n{OPEN_LINE}\n")
    start = opened + len(OPEN_LINE) + 1 if opened >= 0 else 0
    closed = f"{text}\n".rfind(f"\n{CLOSE_LINE}\n", max(start - 1, 0))
    return text[start:closed] if opened >= 0 and closed >= start else text[start:]


def first_line(text: str) -> str:
    """The first line with something on it, without its outer white space, cut to MAX_EVIDENCE characters."""
    stripped = text.lstrip()
    return stripped.split("\n", 1)[0][:MAX_EVIDENCE].rstrip()


def primary_licence(folded: FoldedText) -> Finding | None:
    """The licence of the work itself.

    Files often hold several: the first one is the work's own, what follows is of bundled parts. A full text counts
    before mere names, unless a sentence shortly before it says under which licence the work is.
    """
    full = _first_full_text(folded.folded)
    if full is None:
        return _tagged(folded) or _under_heading(folded) or next(_statements(folded.folded), None)
    stated = next(_statements(folded.folded, max(0, full.start - NEAR), full.start), None)
    return stated or full


def _first_full_text(folded: str) -> Finding | None:
    best: Finding | None = None
    scopes: dict[int, str] = {}
    for signature in SIGNATURES:
        for anchor in signature.anchors:
            at = folded.find(anchor)
            if at < 0 or (best is not None and at >= best.start):
                continue
            if signature.needs and not signature.whole and at not in scopes:
                scopes[at] = folded[at : _next_anchor(folded, at + len(anchor) - 1)]
            if _fits(signature, folded[at:] if signature.whole else scopes.get(at, "")):
                best = Finding(_full_id(signature.spdx_id, folded, at), at, at + len(anchor))
    return best


def _fits(signature: Signature, scope: str) -> bool:
    return all(phrase in scope for phrase in signature.needs)


def _next_anchor(folded: str, after: int) -> int:
    found = (folded.find(anchor, after) for anchor in ANCHORS)
    return min((at for at in found if at >= 0), default=len(folded))


def _full_id(spdx_id: str, folded: str, at: int) -> str:
    """GNU texts are the same for "only" and "or later": only a sentence of the work itself tells, and the texts'
    own appendix ("How to Apply These Terms") is none. Without one, "only" grants nothing that was not granted."""
    if not _GNU_FULL.match(spdx_id):
        return spdx_id
    later = " any later version " in folded[: at + 1]
    return f"{spdx_id}-{'or-later' if later else 'only'}"


def _statements(folded: str, start: int = 0, end: int | None = None) -> Iterator[Finding]:
    """Licences that sentences name, in order: "under the terms of the X", "X licensed", "License: X"."""
    for trigger in _TRIGGER.finditer(folded, start, len(folded) if end is None else end):
        if trigger[0].endswith("ed"):
            before = _named_before(folded, trigger.start())
            if before:
                yield before
        at = _skip_fillers(folded, trigger.end())
        named = NAME.match(folded, at)
        finding = _finding(folded, named, trigger.start()) if named else None
        if finding:
            yield finding


def _named_before(folded: str, end: int) -> Finding | None:
    """The name that ends right before "licensed", as in "is MIT licensed"."""
    for named in NAME.finditer(folded, max(0, end - 40), end + 1):
        if named.end() == end + 1:
            return _finding(folded, named, named.start())
    return None


def _skip_fillers(folded: str, at: int) -> int:
    for _ in range(_MAX_FILLERS):
        close = folded.find(" ", at + 1)
        if close < 0 or folded[at + 1 : close] not in _FILLERS:
            break
        if NAME.match(folded, at):
            break
        at = close
    return at


def _finding(folded: str, named: re.Match[str], start: int) -> Finding | None:
    spdx_id, end = NAME_PATTERNS[int((named.lastgroup or "n0")[1:])][0], named.end()
    if folded.startswith(("license ", "licence "), end):
        end += len("license ")
    if spdx_id not in _GNU:
        return Finding(spdx_id, start, end)
    after = folded[named.end() - 1 : named.end() + 220]
    gnu = gnu_id(spdx_id, named[0], after)
    return Finding(gnu, start, min(end + 120, len(folded))) if gnu else None


def _tagged(folded: FoldedText) -> Finding | None:
    tag = _SPDX_TAG.search(folded.text)
    if tag is None or tag[1].startswith("LicenseRef"):
        return None
    start = folded.position(tag.start())
    end = folded.position(tag.end())
    return Finding(tag[1].rstrip("."), start, end if end > start else len(folded.folded))


def _under_heading(folded: FoldedText) -> Finding | None:
    """The licence named first in a section headed "License"."""
    for heading in islice(_HEADING.finditer(folded.text), _MAX_HEADINGS):
        section = FoldedText(folded.text[heading.end() : heading.end() + 500])
        found = next(_statements(section.folded), None)
        if found is None:
            named = NAME.search(section.folded, 0, 120)
            found = _finding(section.folded, named, named.start()) if named else None
        if found:
            shift = folded.position(heading.end())
            return Finding(found.spdx_id, shift + found.start, shift + found.end)
    return None
