"""Filters: what a job lets people choose in the trigger form. Each is bound as %(name)s, never pasted into SQL.

Values are kept as JSON (a date as its ISO text) and bound with their type. Messages never repeat a value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, WithJsonSchema, field_validator

from nightmill.domain.errors import ConfigError
from nightmill.domain.suggestions import aside, hint, listed

INTERVAL = frozenset({"data_interval_start", "data_interval_end"})  # bound in every query without being declared
RESERVED = INTERVAL | {
    "dry_run",
    "limit",
    "note",
    "parent_batch",
    "priority",
    "publish",
    "replace_intervals",
    "reprocess",
}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}\Z")
# A name without %: "%(" a million times over must not be read to the end each time.
_PARAMETER = re.compile(r"%%|%\(([^)%]*)\)[sbt]?")
_PERCENT = re.compile(r"%%|%\([^)%]*\)[sbt]?|(%)")
_RANGED = frozenset({"integer", "number", "date"})
_EXPECTED = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text without the character NUL",
    "boolean": "true or false",
    "date": "a date such as 2026-01-31",
}
_JSON_TYPES = {"enum": "string", "date": "string"}
_SQL_TYPES = {
    "enum": "text",
    "integer": "bigint",
    "number": "numeric",
    "string": "text",
    "boolean": "boolean",
    "date": "date",
}


def _allowed(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"this name is taken: nightmill itself uses {', '.join(sorted(RESERVED))}")
    if not _NAME.match(name):
        raise ValueError("a filter's name has lower-case letters, digits and _, at most 48, a letter first")
    return name


FilterName = Annotated[str, AfterValidator(_allowed)]
_Bound = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "format": "date"}]})]
_Value = Annotated[Any, WithJsonSchema({"anyOf": [{"type": name} for name in ("string", "number", "boolean", "null")]})]


class Filter(BaseModel):
    """One choice of the trigger form. The query uses it as %(NAME)s, NAME being its key here, and gets a value of the
    SQL type text (enum, string), bigint (integer), numeric (number), boolean or date."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["enum", "integer", "number", "string", "boolean", "date"] = Field(
        description="What may be chosen: one of `values`, a number, text, true or false, a date."
    )
    values: tuple[str, ...] = Field(
        default=(), validate_default=True, description="The choices of an enum, each of them text (no: in quotes)."
    )
    minimum: _Bound = Field(default=None, description="The least integer, number or date.")
    maximum: _Bound = Field(default=None, description="The greatest integer, number or date.")
    nullable: bool = Field(
        default=False,
        description="Whether null may be chosen, for no restriction: `(%(NAME)s is null or x = %(NAME)s)`.",
    )
    default: _Value = Field(
        default=None, validate_default=True, description="Taken where nobody chose; needed unless `nullable`."
    )
    description: str = Field(description="Shown in the trigger form.")

    @field_validator("values")
    @classmethod
    def _choices(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        kind = info.data.get("type")
        if kind == "enum" and not value:
            raise ValueError("missing: an enum needs its choices")
        if kind not in (None, "enum") and value:
            raise ValueError(f"a filter of type {kind} has no choices")
        if len(set(value)) < len(value):
            raise ValueError("one of the choices stands here twice")
        return value

    @field_validator("minimum", "maximum")
    @classmethod
    def _end_of_range(cls, value: Any, info: ValidationInfo) -> Any:
        kind = info.data.get("type")
        if value is None or kind is None:
            return value
        if kind not in _RANGED:
            raise ValueError(f"a filter of type {kind} has no range")
        typed = _typed(kind, value)
        least = info.data.get("minimum")
        if info.field_name == "maximum" and least is not None and typed < least:
            raise ValueError("expected a value that is not below the minimum")
        return typed

    @field_validator("default")
    @classmethod
    def _fits(cls, value: Any, info: ValidationInfo) -> Any:
        declared = info.data
        if not {"type", "values", "minimum", "maximum", "nullable"} <= declared.keys():
            return value  # what is wrong there is said there
        if value is None and not declared["nullable"]:
            raise ValueError("missing: a filter has a default unless it is nullable")
        return _fitting(declared, value)

    def bound(self, value: Any) -> Any:
        """The value as the query gets it. Raises ValueError with what was expected."""
        return _fitting(dict(self), value)

    def read(self, text: str) -> Any:
        """The value of a text from the command line, `null` for no restriction. Raises ValueError."""
        if text == "null" and self.nullable:
            return None
        if self.type in ("integer", "number"):
            return self.bound(_number(text))
        if self.type == "boolean":
            return self.bound({"true": True, "false": False}.get(text, text))
        return self.bound(text)

    @property
    def schema_of_value(self) -> dict[str, Any]:
        """The JSON schema of its values. It cannot hold a date's range: `bound` does."""
        kind = _JSON_TYPES.get(self.type, self.type)
        schema: dict[str, Any] = {"type": ["null", kind] if self.nullable else kind}
        if self.type == "enum":
            schema["enum"] = [*self.values, *([None] if self.nullable else [])]
        if self.type == "date":
            schema["format"] = "date"
        elif self.type in _RANGED:
            ends = {"minimum": self.minimum, "maximum": self.maximum}
            schema |= {name: value for name, value in ends.items() if value is not None}
        return schema


def chosen(filters: Mapping[str, Filter], params: Mapping[str, Any]) -> dict[str, Any]:
    """What the query gets for each filter: what was chosen, else the default. Raises ConfigError naming the filter."""
    values = {}
    for name, one in filters.items():
        try:
            values[name] = one.bound(params[name]) if name in params else one.default
        except ValueError as fault:
            raise ConfigError(f"The filter {name!r} has a value that is not allowed: {fault}.", _CHOOSE) from None
    return values


def read_all(filters: Mapping[str, Filter], given: Iterable[str]) -> dict[str, Any]:
    """`name=value` of a command line, each read in the kind of its filter. Raises ConfigError; repeats no value."""
    values = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or name not in filters:
            raise ConfigError(
                f"The job has no filter {name!r}{aside(name, filters)}." if equals
                else f"--filter {name} has no value." if name in filters else "--filter is no NAME=VALUE.",
                f"Use one of {listed(filters)}, such as --filter NAME=VALUE.",
            )  # fmt: skip
        try:
            values[name] = filters[name].read(value)
        except ValueError as fault:
            remedy = f"Choose a value that fits: {filters[name].description.strip()}"
            raise ConfigError(f"--filter {name}: {fault}.", remedy) from None
    return values


def refuse_unknown(filters: Mapping[str, Filter], params: Mapping[str, Any]) -> None:
    """Raise ConfigError when a run was configured with a name that is neither a filter nor nightmill's own: a misspelt
    one would restrict nothing."""
    known = filters.keys() | RESERVED
    for name in sorted(params.keys() - known):
        raise ConfigError(
            f"The run's configuration names {name!r}, which this job does not know{aside(name, known)}.",
            f"Trigger a new run with names of {listed(known - {'parent_batch'})}.",
        )


_CHOOSE = "Choose another one in the trigger form, or change source.filters in job.yaml."


def as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as a batch keeps them."""
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in values.items()}


def with_types(query: str, filters: Mapping[str, Filter]) -> str:
    """The query with a type behind each use of a filter: a bound null has none of its own."""

    def typed(found: re.Match[str]) -> str:
        one = filters.get(found[1]) if found[1] is not None else None
        return f"{found[0]}::{_SQL_TYPES[one.type]}" if one is not None else found[0]

    return _PARAMETER.sub(typed, query)


def parameters_of(query: str) -> list[tuple[str, int]]:
    """The names of all %(name)s of a query, each with its position in the text."""
    return [(found[1], found.start()) for found in _PARAMETER.finditer(query) if found[1] is not None]


def lone_percents(query: str) -> list[int]:
    """Where a % stands that starts no %(name)s and is not doubled: drivers take it for a parameter."""
    return [found.start() for found in _PERCENT.finditer(query) if found[1]]


def _fitting(declared: Mapping[str, Any], value: Any) -> Any:
    if value is None:
        if declared["nullable"]:
            return None
        raise ValueError("expected a value, found null")
    kind = declared["type"]
    if kind == "enum":
        if value not in declared["values"]:
            raise ValueError(f"expected one of {', '.join(declared['values'])}{hint(str(value), declared['values'])}")
        return value
    typed = _typed(kind, value)
    if declared["minimum"] is not None and typed < declared["minimum"]:
        raise ValueError(f"expected at least {declared['minimum']}")
    if declared["maximum"] is not None and typed > declared["maximum"]:
        raise ValueError(f"expected at most {declared['maximum']}")
    return typed


def _typed(kind: str, value: Any) -> Any:
    """The value in the type of its kind. bool is no number here, although Python says so."""
    if kind == "date" and isinstance(value, str):
        value = _date(value)
    right = {
        "integer": type(value) is int,
        "number": type(value) in (int, float) and math.isfinite(value),
        "string": isinstance(value, str) and "\0" not in value,
        "boolean": isinstance(value, bool),
        "date": type(value) is date,
    }
    if not right[kind]:
        raise ValueError(f"expected {_EXPECTED[kind]}")
    return value


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _number(text: str) -> int | float | str:
    """The number that a text shows; the text itself where it shows none."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
