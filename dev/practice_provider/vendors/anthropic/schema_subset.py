"""What a JSON schema may hold to be honoured.

Source: the anthropic SDK's schema transformation (which keywords it moves into descriptions) for the subset; the limits
of a request are reported by several users, not documented.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MOST_OPTIONAL, MOST_UNIONS = 24, 16
FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid", "text"}
)
_REFUSED = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "maxItems", "uniqueItems", "contains", "prefixItems"),
        *("oneOf", "not", "if", "then", "else", "patternProperties", "propertyNames", "dependentSchemas"),
        *("minProperties", "maxProperties"),
    }
)


def complaint(schema: Mapping[str, Any]) -> str | None:
    """The first thing that is not supported, in words; None for a schema that can be honoured."""
    try:
        return _first_complaint(list(_parts(schema)))
    except (AttributeError, TypeError):
        return "This is not a valid JSON schema"


def _first_complaint(parts: Sequence[Mapping[str, Any]]) -> str | None:
    for part in parts:
        found = _of_part(part)
        if found is not None:
            return found
    optional = sum(len(set(part.get("properties") or ()) - set(part.get("required") or ())) for part in parts)
    if optional > MOST_OPTIONAL:
        return f"Schemas contain {optional} optional properties, at most {MOST_OPTIONAL} are supported"
    unions = sum("anyOf" in part or isinstance(part.get("type"), list) for part in parts)
    if unions > MOST_UNIONS:
        return f"Schemas contain {unions} union types, at most {MOST_UNIONS} are supported"
    return None


def _of_part(part: Mapping[str, Any]) -> str | None:
    kind = part.get("type")
    refused = sorted(_REFUSED & part.keys())
    if refused:
        return f"For '{kind}' type, property '{refused[0]}' is not supported"
    if kind == "object" and part.get("additionalProperties") is not False:
        return "For 'object' type, 'additionalProperties' must be explicitly set to false"
    if part.get("minItems", 0) not in (0, 1):
        return "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
    if kind == "string" and part.get("format", "text") not in FORMATS:
        return f"For 'string' type, format '{part['format']}' is not supported"
    return None


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The schema and all schemas within it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for name in ("properties", "$defs", "definitions"):
        inner = schema.get(name)
        for one in inner.values() if isinstance(inner, dict) else ():
            yield from _parts(one)
    for name in ("anyOf", "allOf", "oneOf"):
        for one in schema.get(name) or ():
            yield from _parts(one)
    yield from _parts(schema.get("items"))
