"""Lossless mending of an answer's text before it is parsed. Nothing here guesses what a model meant."""

from __future__ import annotations

import json
import re
from typing import Any

_FENCE = re.compile(r"```(?:json)?[ \t]*\r?\n(.*?)\s*```", re.DOTALL | re.IGNORECASE)
_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)  # DeepSeek, Qwen and others
_SURROGATE = re.compile("[\ud800-\udfff]")
_SUSPECT_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
# Every escape is consumed, so that an escaped backslash never looks like the start of one. Groups: whole pair, broken.
_ESCAPE = re.compile(
    r"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2}))|\\."
)


# The start of a text behind { or , that has a backslash. It can be a value in a list: then the parser looks in vain.
_ESCAPED_KEY = re.compile(r'[{,]\s*"[^"\\]*\\')


class _DoubledKeyError(ValueError):
    """An object says the same key twice: which value counts is anybody's guess."""


def unwrap(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without the reasoning before it, one enclosing Markdown fence and one extra layer of JSON string, and
    notes of what was taken."""
    body = text.strip().removeprefix("\ufeff").lstrip()
    notes: tuple[str, ...] = ()
    if body.startswith("<") and (thoughts := _THOUGHTS.match(body)):
        body, notes = body[thoughts.end() :].strip(), ("dropped_reasoning",)
    if body.startswith("```"):
        fenced = _FENCE.fullmatch(body)
        if fenced:
            body, notes = fenced.group(1).strip(), (*notes, "unwrapped_fence")
    if body.startswith('"'):
        inner = _inner_text(body)
        if inner is not None:
            body, notes = inner, (*notes, "decoded_twice")
    return body, notes


def mend(body: str) -> str:
    """The same JSON text with U+FFFD for escaped NUL and half surrogate pairs; the very same object when clean.

    Numbers keep their digits: the text is not parsed.
    """
    mended = body
    if "\\u" in body and _SUSPECT_ESCAPE.search(body):
        mended = _ESCAPE.sub(lambda found: r"\ufffd" if found[2] else found[0], mended)
    if not body.isascii():
        mended = _SURROGATE.sub("\ufffd", mended)
    return body if mended == body else mended


def has_escaped_key(body: str) -> bool:
    """Whether some key may be written with an escape, so that its text does not show what it is."""
    return _ESCAPED_KEY.search(body) is not None


def doubled_key(body: str) -> str | None:
    """The first key that some object says twice. Text that is not JSON has none: the parser will say so."""
    try:
        json.loads(body, object_pairs_hook=_object)
    except _DoubledKeyError as fault:
        return str(fault.args[0])
    except (ValueError, RecursionError):
        return None
    return None


def _inner_text(body: str) -> str | None:
    try:
        inner = json.loads(body)
    except ValueError:
        return None
    stripped = inner.strip() if isinstance(inner, str) else ""
    return stripped if stripped.startswith(("{", "[")) else None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        raise _DoubledKeyError(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return value
