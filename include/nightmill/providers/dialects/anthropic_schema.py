"""The part of JSON schema that Anthropic's structured output takes, and how another schema is fitted into it.

Source: the `anthropic` SDK (what its schema transformation keeps) for the keywords; the limits of one request are
reported by several users and stand in no documentation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

MOST_OPTIONAL, MOST_UNIONS = 24, 16  # properties that may be left out, and parts of several types, of one schema
_KEPT = frozenset({"$ref", "description", "title", "required"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})
_SCHEMAS_BY_NAME, _LISTS_OF_SCHEMAS = ("properties", "$defs"), ("anyOf", "allOf")


def fitted(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema in the part that is taken: every other keyword goes into the description, in words. None where it
    goes beyond a limit or refers to itself: then the prompt has to ask for it. Our own check stays the same."""
    written = _node(schema)
    parts = list(_parts(written))
    optional = sum(len(set(part.get("properties", ())) - set(part.get("required", ()))) for part in parts)
    unions = sum("anyOf" in part or isinstance(part.get("type"), list) for part in parts)
    if optional > MOST_OPTIONAL or unions > MOST_UNIONS or _is_recursive(written):
        return None
    return written


def _node(node: Mapping[str, Any]) -> dict[str, Any]:
    written: dict[str, Any] = {}
    left: dict[str, Any] = {}
    is_object = node.get("type") == "object"
    for name, value in node.items():
        if name == "oneOf":
            written["anyOf"] = [_node(one) for one in value]
        elif name in _SCHEMAS_BY_NAME:
            written[name] = {key: _node(one) for key, one in value.items()}
        elif name in _LISTS_OF_SCHEMAS:
            written[name] = [_node(one) for one in value]
        elif name == "items":
            written[name] = _node(value)
        elif name == "type" and ("enum" in node or "const" in node):
            continue  # the values say it, and a list of types would count as a union
        elif _is_taken(name, value):
            written[name] = value
        elif name != "additionalProperties":
            left[name] = value
    if is_object:
        written["additionalProperties"] = False
    if left:
        written["description"] = _described(written.get("description"), left)
    return written


def _is_taken(name: str, value: Any) -> bool:
    if name == "format":
        return value in _FORMATS
    if name == "minItems":
        return value in (0, 1)
    return name in _KEPT or name in ("type", "enum", "const")


def _described(description: Any, left: Mapping[str, Any]) -> str:
    """The description with what the schema cannot say behind it."""
    rules = ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in left.items())
    return f"{description} ({rules})" if description else f"({rules})"


def _parts(node: Any) -> Iterator[Mapping[str, Any]]:
    """The schema and all schemas within it."""
    if not isinstance(node, dict):
        return
    yield node
    for name in _SCHEMAS_BY_NAME:
        for one in node.get(name, {}).values():
            yield from _parts(one)
    for name in _LISTS_OF_SCHEMAS:
        for one in node.get(name, ()):
            yield from _parts(one)
    yield from _parts(node.get("items"))


def _is_recursive(schema: Mapping[str, Any]) -> bool:
    """Whether a definition leads back to itself, or anything to the root."""
    definitions = schema.get("$defs", {})
    leads_to = {name: _references(one) for name, one in definitions.items()}
    if "#" in _references(schema):
        return True
    for name in leads_to:
        reached, left = set[str](), list(leads_to[name])
        while left:
            one = left.pop()
            if one == name:
                return True
            if one not in reached:
                reached.add(one)
                left += leads_to.get(one, ())
    return False


def _references(schema: Mapping[str, Any]) -> set[str]:
    """Names of the definitions that a schema names; `#` for the root."""
    return {str(part["$ref"]).rpartition("/")[2] for part in _parts(schema) if "$ref" in part}
