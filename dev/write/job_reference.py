"""The reference of job.yaml and checks.yaml, the JSON schema for editors and the table of failures: all written from
the code.

`python -m dev.write.job_reference` writes them; a test holds the committed files against the models.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dev.write import failure_page
from nightmill.jobs.check.yaml_mistakes import NAME
from nightmill.jobs.settings.job import Job

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGE, SCHEMA = "job_reference.md", "job.schema.json"
_INTRODUCTION = """# Reference of a job folder

Written by `make docs` from the models in [settings](../../include/nightmill/jobs/settings/job.py); do not edit it.
A key that stands in none of these tables is an error. `python -m nightmill validate` names every mistake of a folder
with its file, line and key.

Editors that know the YAML language server complete keys and show these descriptions when job.yaml begins with

```yaml
# yaml-language-server: $schema=<path or address of this repository>/docs/reference/job.schema.json
```
"""
_CHECKS = """## checks.yaml

Each entry of `expectations` is one Great Expectations expectation on the batch's staged rows: `type` is its class name
in `gx.expectations`, all other keys are its arguments. Columns are the fields of output.py and the provenance columns.
Count equality is checked always and needs no entry.

Class names and names of arguments are checked wherever a folder is read, also when Airflow parses the DAG. The types of
the arguments are known to Great Expectations alone, whose import takes 7 s: `python -m nightmill validate` checks them,
and otherwise `check_staging` does when it runs.

```yaml
expectations:
  - {type: ExpectColumnValuesToNotBeNull, column: topic}
  - {type: ExpectColumnValuesToBeInSet, column: topic, value_set: [billing, bug], mostly: 0.9}
```
"""
_BOUNDS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
_NAMES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "mapping",
    "null": "null",
}
_EMPTY_VALUES: tuple[Any, ...] = ("", [], {})


def job_schema() -> dict[str, Any]:
    """The JSON schema of job.yaml."""
    schema = Job.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "nightmill job.yaml"}


def page() -> str:
    """The reference as Markdown."""
    schema = Job.model_json_schema()
    parts = [_INTRODUCTION, "## job.yaml\n\n" + _table(schema, schema, "")]
    for place, section in _sections(schema, schema, ""):
        parts.append(f"### {place}\n\n{section.get('description', '').strip()}\n\n{_table(section, schema, place)}")
    return "\n".join([*parts, _CHECKS])


def write(folder: Path = DOCS) -> list[Path]:
    """Write all files and return their paths."""
    schema = json.dumps(job_schema(), indent=2, ensure_ascii=False) + "\n"
    content = {PAGE: page(), SCHEMA: schema, failure_page.PAGE: failure_page.page()}
    for name, text in content.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in content]


def _sections(
    node: Mapping[str, Any], schema: Mapping[str, Any], above: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every nested mapping with its dotted place, in the order of the keys."""
    for name, field in node.get("properties", {}).items():
        inner = _mapping_in(field, schema)
        if inner is not None:
            place = f"{above}{name}{_marker(field)}"
            yield place, inner
            yield from _sections(inner, schema, f"{place}.")


def _table(node: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> str:
    required = node.get("required", ())
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for name, field in node.get("properties", {}).items():
        inner = _mapping_in(field, schema)
        meaning = field.get("description") or (inner.get("description", "") if inner is not None else "")
        anchor = _anchor(f"{place}.{name}{_marker(field)}")
        link = f"[{name}](#{anchor})" if inner is not None else f"`{name}`"
        default = "**required**" if name in required else _default(field)
        rows.append(f"| {link} | {_escape(_value(field, schema))} | {default} | {_escape(' '.join(meaning.split()))} |")
    return "\n".join(rows) + "\n"


def _marker(field: Mapping[str, Any]) -> str:
    """What a place has behind a key whose value holds many mappings: a list of them, or one per name."""
    return "[]" if _is_list(field) else f".{NAME}" if _by_name(field) else ""


def _anchor(place: str) -> str:
    """As Markdown renderers make it from a heading."""
    return place.replace(".", "").replace("[]", "").lower()


def _mapping_in(field: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if "$ref" in field:
        referred = _referred(field, schema)
        return None if "enum" in referred else referred
    nested = [*field.get("anyOf", ()), *([field["items"]] if "items" in field else [])]
    if _by_name(field):
        nested.append(field["additionalProperties"])
    return next((found for one in nested if (found := _mapping_in(one, schema)) is not None), None)


def _referred(field: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = schema["$defs"][field["$ref"].rsplit("/", 1)[-1]]
    return found


def _by_name(field: Mapping[str, Any]) -> bool:
    inner = field.get("additionalProperties")
    return isinstance(inner, dict) and "$ref" in inner


def _is_list(field: Mapping[str, Any]) -> bool:
    return "items" in field or any("items" in one for one in field.get("anyOf", ()))


def _value(field: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_value(one, schema) for one in field["anyOf"])
    if "enum" in field or "const" in field:
        return " or ".join(f"`{choice}`" for choice in field.get("enum", [field.get("const")]))
    if "$ref" in field:
        referred = _referred(field, schema)
        return _value(referred, schema) if "enum" in referred else "mapping"
    if _by_name(field):
        return "mapping of names"
    if field.get("type") == "array":
        return f"list of {_value(field.get('items', {}), schema)}"
    bounds = " and ".join(f"{sign} {field[name]}" for name, sign in _BOUNDS.items() if name in field)
    pattern = f" like `{field['pattern']}`" if "pattern" in field else ""
    return _NAMES.get(field.get("type", ""), "any value") + (f" {bounds}" if bounds else "") + pattern


def _default(field: Mapping[str, Any]) -> str:
    value = field.get("default", {})
    if isinstance(value, dict) or value in _EMPTY_VALUES:
        return "empty" if _is_list(field) or field.get("type") == "object" else "see there"
    return f"`{json.dumps(value)}`"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print("\n".join(f"wrote {path}" for path in write()))
