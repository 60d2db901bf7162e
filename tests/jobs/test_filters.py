"""Filters of job.yaml: what may be declared, what is said about mistakes, and what may be chosen."""

# ruff: noqa: E501 - messages are quoted whole

from __future__ import annotations

from datetime import date
from typing import Any

import jsonschema
import pytest

from nightmill.domain.errors import ConfigError, Mistake
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.filters import Filter, as_json, chosen, with_types

JOB = """description: A job.
source:
  conn_id: source
  query: |
    select * from documents  -- 5%% of them
    where region = %(region)s
      and weight >= %(weight)s
  columns: {id: id, text: body}
  filters:
    region:
      type: enum
      values: [north, south]
      default: north
      description: Which region?
    weight:
      type: integer
      minimum: 0
      maximum: 10
      default: 5
      description: At least.
provider: {conn_id: provider, model: m-1}
publish: {view: things}
"""
OUTPUT = "from pydantic import BaseModel\n\n\nclass Output(BaseModel):\n    kind: str\n"


def mistakes(old: str = "", new: str = "") -> list[Mistake]:
    assert not old or JOB.count(old) == 1
    files = {"job.yaml": JOB.replace(old, new) if old else JOB, "prompt.md": "{{ body }}", "output.py": OUTPUT}
    return JobDefinition("things", {name: text.encode() for name, text in files.items()}).mistakes()


def one(**values: Any) -> Filter:
    return Filter.model_validate({"description": "x", **values})


def test_good_filters_are_no_mistake() -> None:
    assert mistakes() == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("type: enum", "type: enumm", "job.yaml:11: source.filters.region.type: expected one of boolean, date, enum, integer, number, string; did you mean 'enum'?"),
        ("type: enum", "typ: enum", "job.yaml:11: source.filters.region.typ: unknown key; did you mean 'type'?"),
        ("      description: Which region?\n", "", "job.yaml:10: source.filters.region.description: missing"),
        ("      default: north\n", "", "job.yaml:10: source.filters.region.default: missing: a filter has a default unless it is nullable"),
        ("default: north", "default: west", "job.yaml:13: source.filters.region.default: expected one of north, south"),
        ("[north, south]", "[north, no]", "job.yaml:12: source.filters.region.values.1: expected text, found true or false"),
        ("[north, south]", "[north, north]", "job.yaml:12: source.filters.region.values: one of the choices stands here twice"),
        ("      values: [north, south]\n", "", "job.yaml:10: source.filters.region.values: missing: an enum needs its choices"),
        ("values: [north, south]", "values: [north, south]\n      minimum: 3", "job.yaml:13: source.filters.region.minimum: a filter of type enum has no range"),
        ("default: 5", "default: 11", "job.yaml:19: source.filters.weight.default: expected at most 10"),
        ("default: 5", "default: true", "job.yaml:19: source.filters.weight.default: expected a whole number"),
        ("maximum: 10", "maximum: -1", "job.yaml:18: source.filters.weight.maximum: expected a value that is not below the minimum"),
        ("minimum: 0", "minimum: low", "job.yaml:17: source.filters.weight.minimum: expected a whole number"),
        ("minimum: 0", "values: [a]", "job.yaml:17: source.filters.weight.values: a filter of type integer has no choices"),
        ("provider:", "    Rest: {type: boolean, default: true, description: x}\nprovider:", "job.yaml:21: source.filters.Rest: a filter's name has lower-case letters, digits and _, at most 48, a letter first"),
        ("%(weight)s", "%(wieght)s", "job.yaml:7: source.query: %(wieght)s is no filter of source.filters; did you mean 'weight'?"),
        ("%(weight)s", "%(weight)s or name like '5%'", "job.yaml:7: source.query: a % that starts no %(name)s"),
        ("%(weight)s", "5", "job.yaml:15: source.filters.weight: the query does not use this filter: choosing a value would change nothing"),
        ("%(weight)s", "%%(weight)s", "job.yaml:15: source.filters.weight: the query does not use this filter: choosing a value would change nothing"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(old: str, new: str, said: str) -> None:
    found = mistakes(old, new)
    assert said in [str(mistake) for mistake in found]
    assert all(mistake.remedy for mistake in found)
    assert len(found) == (2 if "wieght" in new else 1)  # the filter that lost its name is not used then


@pytest.mark.parametrize(
    "name", ["data_interval_start", "data_interval_end", "limit", "dry_run", "reprocess", "note", "priority"]
)
def test_a_name_that_nightmill_uses_itself_is_refused_with_its_line(name: str) -> None:
    found = mistakes("provider:", f"    {name}: {{type: boolean, default: true, description: x}}\nprovider:")
    assert str(found[0]).startswith(f"job.yaml:21: source.filters.{name}: this name is taken")


def test_a_parameter_of_a_query_in_one_line_is_named_with_the_line_of_its_key() -> None:
    old = JOB[JOB.index("  query: |") : JOB.index("  columns")]
    found = mistakes(old, "  query: select * from t where a = %(region)s and b = %(weight)s and c = %(limit)s\n")
    assert [str(mistake) for mistake in found] == ["job.yaml:4: source.query: %(limit)s is no filter of source.filters"]


@pytest.mark.parametrize(
    ("declared", "good", "bad"),
    [
        ({"type": "enum", "values": ["a", "1"], "default": "a"}, ["a", "1"], ["b", 1, None, ["a"], {}]),
        ({"type": "integer", "minimum": 1, "maximum": 3, "default": 1}, [1, 3], [0, 4, 1.5, "1", True, None]),
        ({"type": "number", "minimum": 0.5, "default": 1}, [0.5, 7], [0.4, float("nan"), "1", False]),
        ({"type": "string", "default": ""}, ["", "x"], ["a\0b", 1, None]),
        ({"type": "boolean", "default": False}, [True, False], [0, "true", None]),
        ({"type": "date", "minimum": "2026-01-02", "default": date(2026, 2, 1)}, ["2026-01-02"], ["2026-01-01", "soon", 7]),
        ({"type": "integer", "nullable": True}, [None, 4], ["null"]),
    ],
)  # fmt: skip
def test_only_values_of_the_declared_kind_and_range_are_bound(
    declared: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    declared_filter = one(**declared)
    for value in good:
        assert as_json({"v": declared_filter.bound(value)}) == {"v": value}
        jsonschema.validate(value, declared_filter.schema_of_value)
    for value in bad:
        with pytest.raises(ValueError, match="expected"):
            declared_filter.bound(value)


def test_text_from_the_command_line_is_read_in_the_filters_kind() -> None:
    assert one(type="integer", default=1).read("12") == 12
    assert one(type="number", default=1).read("1.5") == 1.5
    assert one(type="boolean", default=True).read("false") is False
    assert one(type="date", default="2026-01-01").read("2026-03-04") == date(2026, 3, 4)
    assert one(type="string", default="").read("null") == "null"
    assert one(type="string", nullable=True).read("null") is None
    for kind, text in (("integer", "1.5"), ("integer", "x"), ("number", "nan"), ("boolean", "yes")):
        with pytest.raises(ValueError, match="expected"):
            one(type=kind, nullable=True).read(text)


def test_what_nobody_chose_is_the_default_and_a_wrong_choice_is_not_repeated() -> None:
    filters = {"day": one(type="date", default="2026-01-01"), "code": one(type="integer", default=3)}
    assert chosen(filters, {"limit": 5, "code": 4}) == {"day": date(2026, 1, 1), "code": 4}
    with pytest.raises(ConfigError, match=r"'code' .* expected a whole number") as caught:
        chosen(filters, {"code": "sk-secret"})
    assert "sk-secret" not in str(caught.value)


def test_each_use_of_a_filter_gets_its_type_and_everything_else_stays() -> None:
    filters = {"day": one(type="date", nullable=True)}
    query = "select '100%%(day)s' where %(day)s is null or at > %(day)s or at > %(data_interval_start)s"
    assert with_types(query, filters) == (
        "select '100%%(day)s' where %(day)s::date is null or at > %(day)s::date or at > %(data_interval_start)s"
    )
