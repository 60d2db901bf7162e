"""What is told of a check on the staged rows: rule, column, what was seen, and a query to look with.

Told are numbers, names of columns, and words that output.py itself declares (a Literal, an enum). Everything else that
Great Expectations reports can be text of an answer: it is counted, and the query shows it to whoever may read the rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from nightmill.domain.wording import pluralised
from nightmill.jobs.output.columns import PROVENANCE_COLUMNS, Column

COUNT_RULE = "ExpectTableRowCountToEqual"
_COUNTS = ("element_count", "unexpected_count", "missing_count")
_MOST = 10  # values of a list that are told
_NUMERIC = frozenset({"bigint", "double precision"})


@dataclass(frozen=True, slots=True)
class Staged:
    """The rows that were checked: of which batch and view, with which typed columns, and the words that output.py
    declares for some of them."""

    batch_id: int
    view: str
    columns: Sequence[Column]
    declared: Mapping[str, Set[str]]


def declared_words(schema: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """The texts that each field of an output model may have, where it names them."""
    definitions = schema.get("$defs", {})
    fields = schema.get("properties", {})
    found = {name: frozenset(_words(one, definitions)) for name, one in fields.items()}
    return {name: words for name, words in found.items() if words}


def _words(one: Any, definitions: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(one, Mapping):
        return
    if "$ref" in one:
        yield from _words(definitions.get(str(one["$ref"]).rsplit("/", 1)[-1]), definitions)
    yield from (word for word in (*one.get("enum", ()), one.get("const")) if isinstance(word, str))
    for option in one.get("anyOf", ()):
        yield from _words(option, definitions)
    yield from _words(one.get("items"), definitions)


def verdict(one: Any, staged: Staged) -> dict[str, Any]:
    """A result of Great Expectations as JSON that may be stored and shown."""
    config = one.expectation_config
    result = json.loads(json.dumps(one.result or {}, default=str))
    columns = _columns(config.kwargs)
    told = {
        "rule": "".join(word.capitalize() for word in config.type.split("_")),  # as checks.yaml writes it
        "column": config.kwargs.get("column"),
        "passed": bool(one.success),
        "raised": _raised(one.exception_info or {}),
        **{name: result[name] for name in _COUNTS if name in result},
    }
    observed = _observed(result.get("observed_value"), columns, staged)
    if observed is not None:
        told["observed"] = observed
    if not one.success:
        told["query"] = _query(columns, staged)
    return told


def count_verdict(rows: int, expected: int, staged: Staged) -> dict[str, Any]:
    """What `verdict` makes of the check that the staged rows are as many as expected."""
    passed = rows == expected
    told = {"rule": COUNT_RULE, "column": None, "passed": passed, "raised": False, "observed": str(rows)}
    return told if passed else told | {"query": _query([], staged)}


def described(told: Mapping[str, Any]) -> str:
    """One failed check in a line, without its query."""
    parts = [told["rule"]]
    if told["column"]:
        parts.append(f"on {told['column']}")
    if told.get("unexpected_count") is not None:
        parts.append(f"({told['unexpected_count']} unexpected)")
    if told.get("element_count"):
        missing = told.get("missing_count")
        parts.append(
            f"in {pluralised(told['element_count'], 'row')}" + (f", {missing} of them null" if missing else "")
        )
    if told.get("observed") is not None:
        parts.append(f"saw {told['observed']}")
    if told["raised"]:
        parts.append("raised an error")
    return " ".join(parts)


def _columns(arguments: Mapping[str, Any]) -> list[str]:
    named = [arguments.get(name) for name in ("column", "column_A", "column_B")]
    return [name for name in (*named, *(arguments.get("column_list") or ())) if isinstance(name, str)]


def _observed(value: Any, columns: Sequence[str], staged: Staged) -> str | None:
    """What may be told of an observed value; None where there is none."""
    if value is None:
        return None
    if isinstance(value, Mapping):  # of quantiles
        value = value.get("values")
    if not isinstance(value, list):
        told = _tellable(value, columns, staged)
        return told if told is not None else "a text, which the query shows"
    told_ones = [told for one in value if (told := _tellable(one, columns, staged)) is not None]
    others = len(value) - len(told_ones[:_MOST])
    rest = [pluralised(others, "other value")] if others else []
    return ", ".join(told_ones[:_MOST] + rest) or "nothing"


def _tellable(value: Any, columns: Sequence[str], staged: Staged) -> str | None:
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return f"{value:g}" if isinstance(value, float) else str(value)
    known = {column.name for column in staged.columns} | set(PROVENANCE_COLUMNS) if not columns else set()
    for name in columns:
        known |= staged.declared.get(name, set())
    return value if isinstance(value, str) and value in known else None


def _query(columns: Sequence[str], staged: Staged) -> str:
    """Shows the values of the checked columns with how often each comes; no value stands in it."""
    rows = f"nightmill.rows_{staged.view} where part_id = {staged.batch_id} and gap_reason is null"
    if not columns:
        return f"select count(*) from {rows}"
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    numeric = all(column.sql_type in _NUMERIC for column in staged.columns if column.name in columns)
    order = "1" if numeric else "count(*) desc"
    groups = ", ".join(str(place) for place in range(1, len(columns) + 1))
    return f"select {names}, count(*) from {rows} group by {groups} order by {order} limit 50"


def _raised(info: Mapping[str, Any]) -> bool:
    """Whether the check itself failed; Great Expectations reports it flat or once per metric."""
    return bool(info.get("raised_exception")) or any(_raised(part) for part in info.values() if isinstance(part, dict))
