"""An output model as the strict JSON schema that structured output accepts.

The subset is OpenAI's (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas): every property
required, no additional ones, and only some keywords. What the schema cannot say is still checked on the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from nightmill.domain.errors import BrokenJobFolder, Mistake
from nightmill.jobs.output.columns import DECIMAL, types_of
from nightmill.jobs.output.job_code import contained
from nightmill.jobs.output.output_module import FILE, TYPES, json_schema

_NUMBER_BOUNDS = ("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_KEPT = ("type", "enum", "description", "minItems", "maxItems", *_NUMBER_BOUNDS)
_DECIMAL = r"^-?[0-9]+(\.[0-9]+)?$"
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})


def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema to send. Raises BrokenJobFolder, naming the place, for what strict mode has no word for: open maps,
    untyped fields, tuples, a root that is not an object."""
    schema, name = json_schema(model), model.__name__
    if "$ref" in schema:  # a model that refers to itself: its root is a definition
        schema = {**schema, **schema["$defs"][str(schema["$ref"]).rpartition("/")[2]]}
        del schema["$ref"]
    if schema.get("type") != "object":
        raise _inexpressible(name, "the root is not an object")
    with contained(FILE, name, TYPES):  # nested too deep, or a shape that no model of pydantic's own has
        writer = _StrictWriter(schema.get("$defs", {}))
        root = writer.node({key: value for key, value in schema.items() if key != "$defs"}, name, ())
        definitions = {key: writer.node(value, key, (key,)) for key, value in schema.get("$defs", {}).items()}
    return {**root, "$defs": definitions} if definitions else root


class _StrictWriter:
    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions

    def node(self, node: Mapping[str, Any], place: str, inside: tuple[str, ...]) -> dict[str, Any]:
        """One schema node. `inside` are the definitions that are being written out at this place."""
        if "$ref" in node:
            return self._reference(node, place, inside)
        if len(node.get("allOf", ())) == 1:
            return self.node({**node["allOf"][0], **_without(node, "allOf")}, place, inside)
        strict = {key: node[key] for key in _KEPT if key in node}
        if "const" in node:
            strict["enum"] = [node["const"]]
        if "enum" in strict and "type" not in strict and (kinds := types_of(strict["enum"])):
            strict["type"] = kinds if len(kinds) > 1 else kinds[0]
        if node.get("format") in _FORMATS:
            strict["format"] = node["format"]
        if node.get("format") == DECIMAL:
            strict["pattern"] = _DECIMAL
        if "pattern" in node and "(?" not in node["pattern"]:  # look-around is not in the provider's dialect
            strict["pattern"] = node["pattern"]
        choices = node.get("anyOf") or node.get("oneOf")
        if choices:
            strict["anyOf"] = [self.node(choice, f"{place}|{number}", inside) for number, choice in enumerate(choices)]
        elif node.get("type") == "object":
            strict.update(self._object(node, place, inside))
        elif node.get("type") == "array":
            strict["items"] = self._items(node, place, inside)
        elif not {"type", "enum"} & set(strict):
            raise _inexpressible(place, "the field has no type")
        return strict

    def _object(self, node: Mapping[str, Any], place: str, inside: tuple[str, ...]) -> dict[str, Any]:
        properties = node.get("properties")
        if not isinstance(properties, Mapping):
            raise _inexpressible(place, "a map with free keys")
        written = {name: self.node(child, f"{place}.{name}", inside) for name, child in properties.items()}
        return {"properties": written, "required": list(written), "additionalProperties": False}

    def _items(self, node: Mapping[str, Any], place: str, inside: tuple[str, ...]) -> dict[str, Any]:
        if "prefixItems" in node or not node.get("items"):
            raise _inexpressible(place, "a tuple or an untyped list")
        return self.node(node["items"], f"{place}[]", inside)

    def _reference(self, node: Mapping[str, Any], place: str, inside: tuple[str, ...]) -> dict[str, Any]:
        """A bare $ref stays. One with a description beside it is not allowed, so the definition is written out."""
        name = str(node["$ref"]).rpartition("/")[2]
        if "description" not in node or name in inside or name not in self._definitions:
            return {"$ref": node["$ref"]}
        merged = {**self._definitions[name], "description": node["description"]}
        return self.node(merged, place, (*inside, name))


def _without(node: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in node.items() if name != key}


def _inexpressible(place: str, what: str) -> BrokenJobFolder:
    problem = f"cannot be asked for as structured output: {what}"
    remedy = "Use fields of str, int, float, bool, date, Literal, enums, lists and nested models."
    return BrokenJobFolder((Mistake("output.py", None, place, problem, remedy),))
