"""Where a query ends: semicolons and comments behind it must not end up within another statement."""

from __future__ import annotations

import re

# Texts and quoted names are one token each, to the end of the query where nothing closes them. Comments that nest and
# texts in dollars are found by hand.
_TOKEN = re.compile(
    r"""
    (?P<blank> \s+ | --[^\n]* )
  | (?P<nest> /\* )
  | (?P<end> ; )
  | (?:\b[eE]'(?:[^'\\]|\\.|'')*(?:'|\Z))
  | '(?:[^']|'')*(?:'|\Z)
  | "(?:[^"]|"")*(?:"|\Z)
  | \w+ | .
    """,
    re.VERBOSE | re.DOTALL,
)
_DOLLARS = re.compile(r"(?<![\w$])\$(?:[^\W\d]\w*)?\$")
_NEST = re.compile(r"/\*|\*/")


def without_end(query: str) -> str:
    """The query without the semicolons at its end and without comments behind them. What stands behind a semicolon
    otherwise stays: Postgres refuses a second statement, and says so."""
    cut, at = None, 0
    while at < len(query):
        kind, after = _next(query, at)
        if kind == "end":
            cut = at if cut is None else cut
        elif kind != "blank":
            cut = None
        at = after
    return query[:cut].strip()


def _next(query: str, at: int) -> tuple[str | None, int]:
    """What stands there (`blank`, `end` or None for the query's own text) and where the next thing starts."""
    opening = _DOLLARS.match(query, at)
    if opening:
        closing = query.find(opening[0], opening.end())
        return None, len(query) if closing < 0 else closing + len(opening[0])
    found = _TOKEN.match(query, at)
    assert found is not None
    if found.lastgroup != "nest":
        return found.lastgroup, found.end()
    depth, after = 1, found.end()
    while depth and (mark := _NEST.search(query, after)):
        depth += 1 if mark[0] == "/*" else -1
        after = mark.end()
    return "blank", len(query) if depth else after
