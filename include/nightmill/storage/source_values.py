"""Reading a source's values so that they reach the prompt as they are: what Python or JSON would round, leave out or
refuse is text, as Postgres writes it."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.types.json import set_json_loads
from psycopg.types.string import TextLoader

from nightmill.domain.errors import SourceError

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1  # whole numbers of a payload line
_TEXT = (
    *("date", "time", "timetz", "timestamp", "timestamptz", "interval"),  # infinity, BC, months
    "numeric",  # 0.00000000 is 0E-8 in Python
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),  # an open end is no None
    *("int4multirange", "int8multirange", "nummultirange", "datemultirange", "tsmultirange", "tstzmultirange"),
    *("inet", "cidr"),
)


def register(conn: Connection[Any]) -> None:
    """Read this connection's columns so."""
    set_json_loads(_loads, conn)
    for name in ("float4", "float8"):
        conn.adapters.register_loader(name, _FloatLoader)
    for name in _TEXT:
        conn.adapters.register_loader(name, TextLoader)
    conn.adapters.register_loader("bpchar", _PaddedLoader)


class _FloatLoader(Loader):
    def load(self, data: Buffer) -> float | str:
        written = bytes(data).decode()
        value = float(written)
        return value if math.isfinite(value) else written  # NaN, Infinity, -Infinity


class _PaddedLoader(Loader):
    """char(n): the blanks that fill it mean nothing to Postgres, and `::text` has none of them."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode().rstrip(" ")


def _loads(data: str | bytes) -> Any:
    try:
        return _DECODER.decode(data.decode() if isinstance(data, bytes) else data)
    except RecursionError:
        raise nested_too_deep("A JSON column of the source") from None


def nested_too_deep(what: str) -> SourceError:
    """What is said about JSON of more than some 250 levels."""
    return SourceError(
        f"{what} is nested too deeply.",
        "Take what the prompt needs out of it in the source query: <column> #>> '{outer,inner}' as <name>.",
    )


def _whole(digits: str) -> int | str:
    value = int(digits) if len(digits) <= len(str(_SMALLEST)) else _LARGEST + 1  # thousands of digits take long
    return value if _SMALLEST <= value <= _LARGEST else digits


def _decimal(digits: str) -> float | str:
    value = float(digits)
    return value if Decimal(repr(value)) == Decimal(digits) else digits


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_decimal)
