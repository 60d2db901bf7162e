"""The simplest value that validates against a JSON schema."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

_FORMATS = {
    "date": "1970-01-01",
    "date-time": "1970-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "nobody@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_DEEPEST = 32  # recursive schemas end here with null


def fill(schema: Mapping[str, Any], words: str) -> Any:
    """Strings become `words`, numbers 0 or their minimum, booleans false, arrays as short as they may be, optional
    values their first kind that is not null. A `pattern` that takes 0 gets 0; any other is not honoured."""
    return _value(schema, schema, words, 0)


def _value(schema: Mapping[str, Any], root: Mapping[str, Any], words: str, depth: int) -> Any:
    if depth > _DEEPEST:
        return None
    if "$ref" in schema:
        return _value(_resolve(schema["$ref"], root), root, words, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return _value(_first_real(schema[key]), root, words, depth + 1)
    if schema.get("allOf"):
        merged: dict[str, Any] = {}
        for part in schema["allOf"]:
            merged |= _resolve(part["$ref"], root) if "$ref" in part else part
        return _value(merged, root, words, depth + 1)
    return _typed(_kind(schema), schema, root, words, depth)


def _typed(kind: str, schema: Mapping[str, Any], root: Mapping[str, Any], words: str, depth: int) -> Any:
    match kind:
        case "object":
            properties = schema.get("properties") or {}
            return {name: _value(part, root, words, depth + 1) for name, part in properties.items()}
        case "array":
            one = schema.get("items") or {}
            return [_value(one, root, words, depth + 1) for _ in range(schema.get("minItems") or 0)]
        case "string":
            return _text(schema, words)
        case "integer" | "number":
            return _number(schema, whole=kind == "integer")
        case "boolean":
            return False
        case _:
            return None


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "null")
    if isinstance(kind, list):
        return str(next((one for one in kind if one != "null"), "null"))
    return str(kind)


def _first_real(choices: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next((one for one in choices if one.get("type") != "null"), choices[0])


def _resolve(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        found = found[step.replace("~1", "/").replace("~0", "~")] if step else found
    return found if isinstance(found, dict) else {}


def _text(schema: Mapping[str, Any], words: str) -> str:
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    if _takes_zero(schema.get("pattern")):
        return "0"
    text = words[: schema.get("maxLength")]
    return text.ljust(schema.get("minLength") or 0, ".")


def _takes_zero(pattern: object) -> bool:
    """Whether the text is a number: a pattern that nearly everything fits takes more than digits."""
    try:
        return isinstance(pattern, str) and bool(re.search(pattern, "0")) and not re.search(pattern, "a b")
    except re.error:
        return False


def _number(schema: Mapping[str, Any], *, whole: bool) -> int | float:
    value: int | float = max(0, schema.get("minimum", 0))
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        value = schema["exclusiveMinimum"] + 1
    highest = schema.get("maximum", schema.get("exclusiveMaximum", math.inf))
    if value > highest or (value == highest and "maximum" not in schema):
        value = highest if "maximum" in schema else highest - 1
        if not whole and "minimum" in schema and value < schema["minimum"]:
            value = (schema["minimum"] + highest) / 2
    return math.ceil(value) if whole else value
