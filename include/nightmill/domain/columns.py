"""From an output model's JSON schema to the typed columns of its view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nightmill.domain.errors import BrokenJobFolder, Mistake

PROVENANCE_COLUMNS = (
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
)

MOST_BYTES = 63  # of an identifier in Postgres
_SCALARS = {"string": "text", "integer": "bigint", "number": "double precision", "boolean": "boolean"}
_FORMATS = {"date": "date", "date-time": "timestamp with time zone", "uuid": "uuid"}


@dataclass(frozen=True, slots=True)
class Column:
    """One typed column: its name and Postgres type, whether output.py lets it be null, and what it says of the field.
    Two columns are the same where name and type are."""

    name: str
    sql_type: str
    nullable: bool = field(default=False, compare=False)
    comment: str = field(default="", compare=False)


def typed_columns(schema: Mapping[str, Any]) -> list[Column]:
    """The columns of an object schema in the order of its fields.

    Strings, integers, numbers, booleans, dates and arrays of these become native types; everything else is jsonb.
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
    return [_column(name, one, definitions) for name, one in properties.items()]


def _column(name: str, one: Mapping[str, Any], definitions: Mapping[str, Any]) -> Column:
    said = one.get("description")
    comment = " ".join(said.split()) if isinstance(said, str) else ""
    return Column(name, _sql_type(one, definitions), _may_be_null(one, definitions), comment)


def _may_be_null(one: Mapping[str, Any], definitions: Mapping[str, Any]) -> bool:
    if "$ref" in one:
        return _may_be_null(definitions[one["$ref"].rsplit("/", 1)[-1]], definitions)
    options = [*one.get("anyOf", ()), *one.get("oneOf", ())]
    if options:
        return any(_may_be_null(option, definitions) for option in options)
    return one.get("type") == "null" or None in one.get("enum", ()) or one.get("const", "") is None


def _sql_type(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    field = _resolve(field, definitions)
    kind = field.get("type")
    if kind == "string":
        return _FORMATS.get(field.get("format", ""), "text")
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind == "array":
        item = _sql_type(field.get("items", {}), definitions)
        return "jsonb" if item == "jsonb" or item.endswith("[]") else f"{item}[]"
    return "jsonb"


def _resolve(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references and unwrap `X | None`."""
    if "$ref" in field:
        return _resolve(definitions[field["$ref"].rsplit("/", 1)[-1]], definitions)
    if "const" in field and "type" not in field:
        return {"type": "string" if isinstance(field["const"], str) else "integer"}
    options = [option for option in field.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        return _resolve(options[0], definitions)
    return field
