"""How large a text or list a template's operator, method or filter makes at most, asked before it runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any

_PERCENT_WIDTHS = re.compile(r"%(?:\([^)%]*\))?[#0\- +]*(\*|\d*)(?:\.(\*|\d*))?")
_PADDING = frozenset({"center", "ljust", "rjust", "zfill", "to_bytes"})
_COST_OF_A_BIT = 1_000  # multiplying long numbers takes far more time than their digits take room
# Filters that make a value larger.
GROWING = frozenset(
    {
        "batch",
        "center",
        "format",
        "indent",
        "join",
        "replace",
        "round",
        "slice",
        "striptags",
        "sum",
        "tojson",
        "wordwrap",
    }
)
_DEPTH = 10  # levels that tojson indents, about
_DIGITS = 18  # of a width; no longer one is ever meant


def size(value: Any) -> int:
    """Characters of a text, entries of a list, digits of a whole number."""
    if isinstance(value, str | bytes | list | tuple | dict):
        return len(value)
    return value.bit_length() // 3 if isinstance(value, int) else 1


def of_operation(operator: str, left: Any, right: Any) -> float:
    """Of `left operator right`."""
    if operator == "*":
        for sized, times in ((left, right), (right, left)):
            if isinstance(times, int) and not isinstance(sized, int | float):
                return size(sized) * max(times, 0)
    if operator in ("*", "**") and isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() * max(right, 0) if operator == "**" else left.bit_length() + right.bit_length()
        return bits * _COST_OF_A_BIT
    if operator == "%" and isinstance(left, str):
        return of_percent(left, right)
    return size(left) + size(right)


def of_percent(template: str, values: Any) -> float:
    """Of `template % values`."""
    given = [*values.values()] if isinstance(values, dict) else [*values] if isinstance(values, tuple) else [values]
    widths = " ".join(width for found in _PERCENT_WIDTHS.findall(template) for width in found)
    return _padded(template, widths, given, nested="*" in widths)


def of_format(template: str, given: list[Any]) -> float:
    """Of `template.format(..)`."""
    specs = " ".join(spec or "" for _, _, spec, _ in Formatter().parse(template))
    return _padded(template, specs, given, nested="{" in specs)


def _padded(template: str, fields: str, given: list[Any], *, nested: bool) -> float:
    """The template, each number in its fields taken for a width, each value as it is written; with widths among the
    values where fields are `nested`."""
    widths = re.findall(r"\d+", fields)
    if any(len(width) > _DIGITS for width in widths):
        return float("inf")
    return len(template) + sum(map(int, widths)) + sum(map(size, given)) + (_numbers(given) if nested else 0)


def of_method(name: str, text: Any, given: tuple[Any, ...]) -> float:
    """Of a method of text, bytes or a number, for those that make it larger."""
    if name in _PADDING:
        return _numbers(given)
    if name == "expandtabs":
        return size(text) + int(text.count("\t" if isinstance(text, str) else b"\t")) * _numbers(given)
    if name == "replace" and len(given) > 1:
        return _of_replace(text, given[0], given[1])
    if name == "join" and given:
        return _of_join(given[0], text)
    if name == "translate" and given and isinstance(given[0], dict):
        return size(text) * max(map(size, given[0].values()), default=0)
    return 0


def of_filter(name: str, value: Any, args: tuple[Any, ...], named: Mapping[str, Any], parts: int) -> float:
    """Of one of GROWING on a value that has so many parts."""
    given = (*args, *named.values())
    if name in ("center", "batch", "slice"):
        return _numbers(given)
    if name == "tojson":
        return _numbers(given) * (1 + parts) * _DEPTH
    if name == "round":  # multiplies by a power of ten
        return 4 * _numbers(given) * _COST_OF_A_BIT
    if name == "striptags":  # copies the text for each comment
        return str(value).count("<!--") * len(str(value)) / 1000
    if name in ("indent", "wordwrap"):
        text = str(value)
        pieces = text.count("\n") + 1 + (len(text) if name == "wordwrap" else 0)
        put_in = max((len(one) for one in given if isinstance(one, str)), default=1)
        return len(text) + pieces * max(put_in, _numbers(given) if name == "indent" else 0)
    if name == "replace" and len(given) > 1:
        return _of_replace(str(value), given[0], given[1])
    if name == "join":
        return _of_join(value, given[0] if given else "")
    if name == "format":
        return of_percent(str(value), dict(named) or args)
    if name == "sum":
        return sum(map(size, value)) if any(isinstance(one, str | list | tuple) for one in value) else 0
    return 0


def _numbers(values: Iterable[Any]) -> int:
    """The whole numbers among them, added up."""
    return sum(abs(one) for one in values if isinstance(one, int))


def _of_replace(text: Any, old: Any, new: Any) -> float:
    old, new = (one if isinstance(one, type(text)) else str(one) for one in (old, new))
    return size(text) + int(text.count(old)) * size(new)


def _of_join(values: Any, between: Any) -> float:
    return sum(map(size, values)) + size(between) * len(values)
