"""What pydantic takes for a date, a time, a decimal or a whole number, narrowed and widened to what JSON and ISO 8601
mean by it.

Pydantic reads "1985" as a moment of 1970 and refuses 3.0 for an int; a float can have lost digits that a Decimal was to
keep. The model's own core schema is rewritten around such nodes, and everything else of the model stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic_core import PydanticCustomError, SchemaValidator
from pydantic_core.core_schema import CoreSchema

_Node = dict[str, Any]
_Wraps = dict[str, Callable[[_Node], _Node]]
_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?"
_ISO = {
    "date": (re.compile(_DATE, re.ASCII), date, "an ISO date such as 2026-01-31"),
    "datetime": (re.compile(rf"{_DATE}[Tt ]{_TIME}", re.ASCII), datetime, "an ISO time such as 2026-01-31T09:30:00Z"),
    "time": (re.compile(_TIME, re.ASCII), time, "an ISO time of day such as 09:30:00Z"),
    "timedelta": (re.compile(r"[+-]?P[\dT].*", re.ASCII), timedelta, "an ISO duration such as P1DT12H"),
}
_PARSING = {"timedelta": "time_delta_parsing"}
_NAIVE = "Input should have a time zone, such as Z or +01:00"
_ZONED = frozenset({"datetime", "time"})  # that may have a zone
_NO_NODES = frozenset({"cls", "config", "default", "expected", "function", "members", "metadata", "serialization"})
_EXACT_DIGITS = 15  # of a double
_EXACT_WHOLE = 2**53


def iso_only(adapter: TypeAdapter[Any], zone: tzinfo | None) -> SchemaValidator:
    """The validator of a model whose dates and times are ISO 8601, and in `zone` where they name none; without one
    such times are refused. Decimals keep their digits."""
    return _rewritten(adapter, _narrowed(zone)) or cast(SchemaValidator, adapter.validator)


def whole_numbers(adapter: TypeAdapter[Any], zone: tzinfo | None) -> SchemaValidator | None:
    """The same, and 3.0 is the int 3, as JSON Schema has it; None for a model without an int. Slower: for answers that
    the other one refuses."""
    if _rewritten(adapter, {"int": _whole}) is None:
        return None
    return _rewritten(adapter, _narrowed(zone) | {"int": _whole})


def asks_for_naive_times(adapter: TypeAdapter[Any]) -> bool:
    """Whether some field takes times without a zone only."""
    found = False

    def look(node: _Node) -> _Node:
        nonlocal found
        found = found or node.get("tz_constraint") == "naive"
        return node

    _walk(adapter.core_schema, dict.fromkeys(_ZONED, look))
    return found


def _narrowed(zone: tzinfo | None) -> _Wraps:
    return {kind: _iso(kind, zone) for kind in _ISO} | {"decimal": _digits}


def _rewritten(adapter: TypeAdapter[Any], wraps: _Wraps) -> SchemaValidator | None:
    """None where the model has no node of these kinds."""
    count = 0

    def counted(wrap: Callable[[_Node], _Node]) -> Callable[[_Node], _Node]:
        def one(node: _Node) -> _Node:
            nonlocal count
            count += 1
            return wrap(node)

        return one

    schema = _walk(adapter.core_schema, {kind: counted(wrap) for kind, wrap in wraps.items()})
    # Else pydantic takes the validators that it has built for the classes of nested models.
    return SchemaValidator(cast(CoreSchema, schema), None, _use_prebuilt=False) if count else None


def _walk(node: Any, wraps: _Wraps) -> Any:
    if isinstance(node, list | tuple):
        return type(node)(_walk(part, wraps) for part in node)
    if not isinstance(node, dict):
        return node
    made = {key: part if key in _NO_NODES else _walk(part, wraps) for key, part in node.items()}
    kind = made.get("type")
    return wraps[kind](made) if isinstance(kind, str) and kind in wraps else made


def _before(function: Callable[[Any], Any], node: _Node) -> _Node:
    return {"type": "function-before", "function": {"type": "no-info", "function": function}, "schema": node}


def _iso(kind: str, zone: tzinfo | None) -> Callable[[_Node], _Node]:
    form, own, example = _ISO[kind]
    code, read = _PARSING.get(kind, f"{kind}_parsing"), _reader(kind)

    def checked(value: Any) -> Any:
        if type(value) is str:
            if form.fullmatch(value):
                return read(value)
            raise PydanticCustomError(code, "Input should be {expected}", {"expected": example})
        if isinstance(value, own):  # of a validator of the model's own
            return value
        raise PydanticCustomError(code.replace("parsing", "type"), "Input should be {expected}", {"expected": example})

    def placed(value: Any) -> Any:
        if value.tzinfo is not None:
            return value
        if zone is None:
            raise PydanticCustomError("timezone_aware", _NAIVE)
        return value.replace(tzinfo=zone) if isinstance(value, datetime) else value

    def wrap(node: _Node) -> _Node:
        if kind not in _ZONED:
            return _before(checked, node)
        if node.get("tz_constraint") != "naive":
            return _before(lambda value: placed(checked(value)), node)
        inner = _before(checked, node)
        return {"type": "function-after", "function": {"type": "no-info", "function": placed}, "schema": inner}

    return wrap


def _reader(kind: str) -> Callable[[Any], Any]:
    """Text as its value: a strict node takes the text of JSON only, and not what a function hands on."""
    return SchemaValidator(cast(CoreSchema, {"type": kind})).validate_python


def _digits(node: _Node) -> _Node:
    return _before(_exact, node)


def _exact(value: Any) -> Any:
    """Text, a whole number, or a float that has not lost a digit."""
    if isinstance(value, str | Decimal) or type(value) is int:
        return _decimal(value)
    if type(value) is not float:
        raise PydanticCustomError("decimal_type", "Input should be a decimal number, written as text")
    written = Decimal(repr(value))
    if len(written.as_tuple().digits) > _EXACT_DIGITS or abs(value) >= _EXACT_WHOLE:
        raise PydanticCustomError("decimal_digits", "Input should be text, so that no digit is lost")
    return written


_decimal = _reader("decimal")


def _whole(node: _Node) -> _Node:
    return _before(_as_int, node)


def _as_int(value: Any) -> Any:
    return int(value) if type(value) is float and value.is_integer() and abs(value) < _EXACT_WHOLE else value
