"""The messages of prompt.md: where each starts, who speaks, and the text that decides a prompt's version.

A marker line `<!-- system -->` or `<!-- user -->` starts a message; a file without markers is one user message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from jinja2 import Environment

from nightmill.domain.errors import BrokenJobFolder, Mistake

ROLES = ("system", "user", "assistant")
MOST_MESSAGES = 1_000
SHORTEN = "Let the template do less: loop over fewer entries, and shorten texts in the source query."
_BLANK = r"[^\S\n]*"  # what nobody sees, no-break and ideographic spaces included
_MARKER = re.compile(rf"^<!--\s*({'|'.join(ROLES)})\s*-->{_BLANK}$", re.MULTILINE)
_LIKE_ONE = re.compile(rf"^{_BLANK}(?:\{{#.*?#\}}{_BLANK})*<!--\s*(\w+)\s*-->{_BLANK}(?:\{{#.*|$)", re.MULTILINE)
_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_COMMENTS = frozenset({"comment_begin", "comment", "comment_end"})

Part = tuple[str, int, str]
"""Who speaks, the line where it starts, and the text of a message."""


def split(text: str) -> list[Part]:
    """The messages. Raises BrokenJobFolder for text before the first marker."""
    marks = list(_MARKER.finditer(text))
    if len(marks) > MOST_MESSAGES:
        problem = f"has more than {MOST_MESSAGES:,} messages"
        raise BrokenJobFolder((Mistake("prompt.md", None, None, problem, SHORTEN),))
    if not marks:
        return [("user", *_trimmed(text, 0, len(text)))]
    before = _COMMENT.sub(_line_ends, text[: marks[0].start()])
    if before.strip():
        first = next(number for number, line in enumerate(before.split("\n"), 1) if line.strip())
        problem = "text stands before the first marker line"
        remedy = "Start the file with `<!-- system -->` or `<!-- user -->`, or remove all markers."
        raise BrokenJobFolder((Mistake("prompt.md", first, None, problem, remedy),))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return [(mark[1], *_trimmed(text, mark.end(), end)) for mark, end in zip(marks, ends, strict=True)]


def like_markers(text: str) -> dict[str, int]:
    """Words in lines that look like a marker and are none, each with its line: another word, an indent, a comment."""
    real = {mark.start() for mark in _MARKER.finditer(text)}
    found = [one for one in _LIKE_ONE.finditer(text) if one.start() not in real]
    return {one[1]: text.count("\n", 0, one.start()) + 1 for one in found}


def canonical(parts: Sequence[Part], environment: Environment) -> str:
    """The same text for prompts that send the same: without comments, and laid out as most people write a prompt, so
    that such a file's own bytes name its version."""
    bodies = [(role, _without_comments(body, environment)) for role, _, body in parts]
    if [role for role, _ in bodies] == ["user"]:
        return f"{bodies[0][1]}\n"
    return "\n\n".join(f"<!-- {role} -->\n{body}" for role, body in bodies) + "\n"


def _without_comments(body: str, environment: Environment) -> str:
    return "".join(value for _, kind, value in environment.lex(body) if kind not in _COMMENTS)


def _line_ends(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _trimmed(text: str, start: int, end: int) -> tuple[int, str]:
    """A part of the text without white space around it, and the line where that starts."""
    body = text[start:end]
    skipped = len(body) - len(body.lstrip())
    return text.count("\n", 0, start + skipped) + 1, body.strip()
