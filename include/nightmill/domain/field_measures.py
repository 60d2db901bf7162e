"""Whether two values of a field are the same, and how near an answer is to the known one: between 0 and 1.

Values are as JSON has them: a date is text, a decimal can be a number or text.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any, assert_never

_RELATIVE = 1e-9  # what floating point loses on its way
_SETS = ("text[]", "bigint[]", "boolean[]", "date[]", "uuid[]", "numeric[]")
_NUMBERS = ("double precision", "numeric")


class Measure(StrEnum):
    """How the values of a field are compared."""

    EXACT = "exact"
    NORMALISED = "normalised"
    SET_F1 = "set_f1"
    NUMERIC = "numeric"
    DATE = "date"
    IGNORED = "ignored"


def usual(sql_type: str) -> Measure:
    """The measure of a column that job.yaml says nothing of. The order in a list of texts or whole numbers seldom
    means anything; in a vector it does."""
    if sql_type in _SETS:
        return Measure.SET_F1
    return Measure.NUMERIC if sql_type in _NUMBERS else Measure.EXACT


def score(measure: Measure, answer: Any, known: Any, tolerance: float = 0) -> float:
    """1 = as known, 0 = not at all. A list of known values means any of these, unless the answer is a list too."""
    if measure is Measure.SET_F1:
        return set_f1(answer, known)
    if isinstance(known, list) and not isinstance(answer, list):
        return max((score(measure, answer, one, tolerance) for one in known), default=0.0)
    return float(_same(measure, answer, known, tolerance))


def differ(measure: Measure, one: Any, other: Any, tolerance: float = 0) -> bool:
    """Whether a value changed, as this measure sees it."""
    if measure is Measure.SET_F1:
        return set_f1(one, other) < 1
    return not _same(measure, one, other, tolerance)


def _same(measure: Measure, one: Any, other: Any, tolerance: float) -> bool:
    match measure:
        case Measure.EXACT | Measure.SET_F1:
            return _written(one) == _written(other)
        case Measure.NORMALISED:
            return _written(normalised(one)) == _written(normalised(other))
        case Measure.NUMERIC:
            return _near(_number, one, other, tolerance)
        case Measure.DATE:
            return _near(_day, one, other, tolerance)
        case Measure.IGNORED:
            return True
        case _:
            assert_never(measure)


def normalised(value: Any) -> Any:
    """Text without what people do not mean by it: case, width, runs of white space, punctuation around it."""
    if isinstance(value, list):
        return [normalised(one) for one in value]
    if not isinstance(value, str):
        return value
    folded = " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", value).casefold()).split())
    start, end = 0, len(folded)
    while start < end and _is_edge(folded[start]):
        start += 1
    while end > start and _is_edge(folded[end - 1]):
        end -= 1
    return folded[start:end] or folded  # a mark alone is what it is


def set_f1(answer: Any, known: Any) -> float:
    """The harmonic mean of precision and recall of two lists' different values, texts normalised. Two empty lists are
    the same; what is no list counts as a list of one, null as an empty one."""
    found, wanted = _values(answer), _values(known)
    if not found and not wanted:
        return 1.0
    return 2 * len(found & wanted) / (len(found) + len(wanted))


def _values(value: Any) -> set[str]:
    listed: Sequence[Any] = value if isinstance(value, list) else [] if value is None else [value]
    return {_written(normalised(one)) for one in listed}


def _written(value: Any) -> str:
    """One text per value: 1, 1.0 and true are three different ones in Python's eyes only now and then."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _near(read: Callable[[Any], float | None], one: Any, other: Any, tolerance: float) -> bool:
    first, second = read(one), read(other)
    if first is None or second is None:
        return _written(one) == _written(other)
    return math.isclose(first, second, rel_tol=_RELATIVE, abs_tol=tolerance)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _day(value: Any) -> float | None:
    """Days since the beginning of the calendar; a moment counts by its day in UTC."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    try:
        return float((moment.astimezone(UTC) if moment.tzinfo else moment).date().toordinal())
    except OverflowError:
        return float(date(moment.year, moment.month, moment.day).toordinal())


def _is_edge(character: str) -> bool:
    return character.isspace() or unicodedata.category(character)[0] == "P"
