"""From an output model's JSON schema to the typed columns of its view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nightmill.domain.errors import BrokenJobFolder, Mistake

PROVENANCE_COLUMNS = (
    "part_id",
    "batch_id",
    "ordinal",
    "source_id",
    "source_version",
    "tenant",
    "domain",
    "result_id",
    "reused",
    "model",
    "prompt_version",
    "answered_at",
    "citations",
    "data_interval_start",
    "data_interval_end",
    "published_at",
    "gap_reason",
)

MOST_BYTES = 63  # of an identifier in Postgres
_SCALARS = {"string": "text", "integer": "bigint", "number": "double precision", "boolean": "boolean"}
DECIMAL = "decimal"  # the format of text that is a number with all its digits
_FORMATS = {"date": "date", "date-time": "timestamp with time zone", "uuid": "uuid", DECIMAL: "numeric"}
_JSON_TYPES = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))


@dataclass(frozen=True, slots=True)
class Column:
    """One typed column: its name and Postgres type, whether output.py lets it be null, and what it says of the field.
    Two columns are the same where name and type are."""

    name: str
    sql_type: str
    nullable: bool = field(default=False, compare=False)
    comment: str = field(default="", compare=False)


def typed_columns(schema: Mapping[str, Any], *, marked: bool = False) -> list[Column]:
    """The columns of an object schema in the order of its fields. Where decimals are not `marked` by their format, a
    number or text is one, as pydantic itself writes it.

    Strings, integers, numbers, decimals, booleans, dates, choices and arrays of these become native types; everything
    else is jsonb.
    Raises BrokenJobFolder where fields have names of provenance columns, or such as Postgres would cut.
    """
    definitions = schema.get("$defs", {})
    properties = _resolve(schema, definitions).get("properties", {})
    if not properties:
        remedy = "Give it fields: each becomes a column of the view."
        raise BrokenJobFolder([Mistake("output.py", None, "Output", "has no fields", remedy)])
    taken = [name for name in properties if name in PROVENANCE_COLUMNS]
    if taken:
        remedy = f"Rename it; taken names are {', '.join(PROVENANCE_COLUMNS)}."
        raise BrokenJobFolder(
            [
                Mistake("output.py", None, f"Output.{name}", "has the name of a provenance column", remedy)
                for name in taken
            ]
        )
    odd = [name for name in properties if not name.isprintable()]
    if odd:
        problem = f"the field {odd[0]!r} has a name with a character that cannot be shown"
        raise BrokenJobFolder([Mistake("output.py", None, "Output", problem, "Give it another name.")])
    long = [name for name in properties if len(name.encode()) > MOST_BYTES]
    if long:
        remedy = f"Give it a name of at most {MOST_BYTES} bytes: Postgres cuts longer ones."
        raise BrokenJobFolder(
            [Mistake("output.py", None, f"Output.{name}", "is too long for a column", remedy) for name in long]
        )
    return [_column(name, one, definitions, marked) for name, one in properties.items()]


def _column(name: str, one: Mapping[str, Any], definitions: Mapping[str, Any], marked: bool) -> Column:
    said = one.get("description")
    comment = " ".join(said.split()) if isinstance(said, str) else ""
    return Column(name, _sql_type(one, definitions, marked), _may_be_null(one, definitions), comment)


def _may_be_null(one: Mapping[str, Any], definitions: Mapping[str, Any]) -> bool:
    if "$ref" in one:
        return _may_be_null(definitions[one["$ref"].rsplit("/", 1)[-1]], definitions)
    options = [*one.get("anyOf", ()), *one.get("oneOf", ())]
    if options:
        return any(_may_be_null(option, definitions) for option in options)
    kind = one.get("type")
    return "null" in (kind if isinstance(kind, list) else [kind]) or None in one.get("enum", (one.get("const", ""),))


def types_of(values: Sequence[Any]) -> list[str]:
    """The JSON types of a choice's values, null last; empty where one is neither text, number, truth nor null."""
    real = [value for value in values if value is not None]
    kinds = [next((name for kind, name in _JSON_TYPES if isinstance(value, kind)), "") for value in real]
    if not all(kinds):
        return []
    return [*dict.fromkeys(kinds), *(["null"] if len(real) < len(values) else [])]


def _sql_type(field: Mapping[str, Any], definitions: Mapping[str, Any], marked: bool) -> str:
    field = _resolve(field, definitions)
    if field.get("type") == "array":
        item = _sql_type(field.get("items", {}), definitions, marked)
        return "jsonb" if item == "jsonb" or item.endswith("[]") else f"{item}[]"
    options = [option for option in field.get("anyOf", ()) if option.get("type") != "null"]
    if not marked and [option.get("type") for option in options] == ["number", "string"]:
        return _FORMATS[DECIMAL]
    types = {_scalar_type(_resolve(option, definitions)) for option in options or [field]}
    return types.pop() if len(types) == 1 else "jsonb"


def _scalar_type(field: Mapping[str, Any]) -> str:
    kind = field.get("type")
    if kind is None and "enum" in field:
        kinds = [one for one in types_of(field["enum"]) if one != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    if kind == "string":
        return _FORMATS.get(field.get("format", ""), "text")
    return _SCALARS.get(kind, "jsonb") if isinstance(kind, str) else "jsonb"


def _resolve(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references and unwrap `X | None`."""
    if "$ref" in field:
        return _resolve(definitions[field["$ref"].rsplit("/", 1)[-1]], definitions)
    if "const" in field and "type" not in field:
        return {"enum": [field["const"]]}
    options = [option for option in field.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        return _resolve(options[0], definitions)
    return field
