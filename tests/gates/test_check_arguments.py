"""Expectations that Great Expectations would refuse: the message names class, argument and what was expected."""

# ruff: noqa: E501 - messages are quoted whole

from __future__ import annotations

from typing import Any

import pytest
from support.pipeline import JOB_YAML, OUTPUT, PROMPT

from nightmill.domain.errors import ConfigError
from nightmill.gates import checks
from nightmill.gates.argument_types import refusals, with_argument_types
from nightmill.jobs.check.expectations import NO_ARGUMENTS, arguments_of, known_expectations
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.settings.gate_settings import Expectation


@pytest.fixture(scope="module")
def gx() -> Any:
    import great_expectations

    return great_expectations


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (
            {"type": "ExpectColumnToExists", "column": "a"},
            "no ExpectColumnToExists (did you mean 'ExpectColumnToExist'?).",
        ),
        (
            {"type": "ExpectColumnValuesToBeInSet", "column": "a", "valueset": [1]},
            "ExpectColumnValuesToBeInSet: unknown argument 'valueset' (did you mean 'value_set'?).",
        ),
        ({"type": "ExpectColumnValuesToBeInSet", "column": "a"}, "ExpectColumnValuesToBeInSet: value_set: missing."),
        ({"type": "ExpectTableRowCountToEqual", "value": "x"}, "value: expected a whole number, found text. Remedy: "),
    ],
)
def test_an_expectation_that_cannot_be_made_is_named(gx: Any, check: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checks._expectation(gx, Expectation.model_validate(check))
    assert said in str(caught.value)


def test_the_names_told_without_importing_it_are_those_that_it_has(gx: Any) -> None:
    assert len(known_expectations()) > 40
    assert {name for name in known_expectations() if not hasattr(gx.expectations, name)} == set()


def test_the_arguments_told_without_importing_it_are_those_that_it_takes(gx: Any) -> None:
    told = {name: arguments for name in known_expectations() if (arguments := arguments_of(name))}
    assert len(told) > 40
    for name, arguments in told.items():
        fields = getattr(gx.expectations, name).__fields__
        assert arguments.known == set(fields) - NO_ARGUMENTS, name
        assert arguments.required <= {key for key, field in fields.items() if field.required}, name


@pytest.mark.parametrize(
    ("kind", "arguments", "said"),
    [
        ("ExpectColumnValuesToNotBeNull", "column: 5", "3: ExpectColumnValuesToNotBeNull.column: expected text, found a whole number"),
        ("ExpectColumnValuesToNotBeNull", "column: [title]", "3: ExpectColumnValuesToNotBeNull.column: expected text, found a list"),
        ("ExpectTableRowCountToBeBetween", "min_value: ten", "3: ExpectTableRowCountToBeBetween.min_value: expected a whole number or a date and time, found text"),
        ("ExpectColumnValuesToBeBetween", "column: pages\n    min_value: ten", "4: ExpectColumnValuesToBeBetween.min_value: expected a number or a date or a date and time, found text"),
        ("ExpectColumnValuesToBeBetween", "column: pages", "2: ExpectColumnValuesToBeBetween: min_value and max_value cannot both be None"),
        ("ExpectColumnValuesToNotBeNull", "column: title\n    mostly: 95", "4: ExpectColumnValuesToNotBeNull.mostly: expected a value <= 1.0"),
        ("ExpectColumnValuesToNotBeNull", "column: title\n    severity: critcal", "4: ExpectColumnValuesToNotBeNull.severity: expected one of critical, info, warning; did you mean 'critical'?"),
        ("ExpectColumnValuesToBeInSet", "column: title\n    value_set: billing", "4: ExpectColumnValuesToBeInSet.value_set: expected a list, found text"),
        ("ExpectCompoundColumnsToBeUnique", "column_list: [title]", "3: ExpectCompoundColumnsToBeUnique.column_list: column_list must contain at least two columns"),
        ("ExpectColumnValuesToMatchStrftimeFormat", "column: title\n    strftime_format: '%Q'", "4: ExpectColumnValuesToMatchStrftimeFormat.strftime_format: is refused by Great Expectations"),
        ("ExpectColumnValuesToBeBetween", "column: pages\n    min_vale: 1", "4: ExpectColumnValuesToBeBetween.min_vale: unknown; did you mean 'min_value'?"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_named_with_line_key_and_what_was_expected(
    gx: Any, kind: str, arguments: str, said: str
) -> None:
    definition = _with_checks(f"expectations:\n  - type: {kind}\n    {arguments}\n")
    assert [str(one) for one in with_argument_types(definition)] == [f"checks.yaml:{said}"]


def test_what_great_expectations_takes_is_no_mistake(gx: Any) -> None:
    taken = [
        "{type: ExpectColumnValuesToMatchRegex, column: title, regex: 5}",
        "{type: ExpectColumnValuesToBeBetween, column: pages, min_value: '1', max_value: 2.5, mostly: 0.995}",
        "{type: ExpectColumnValuesToBeBetween, column: answered_at, min_value: 2026-01-01, strict_min: true}",
        "{type: ExpectColumnValuesToBeInSet, column: title, value_set: [a, 1, null]}",
    ]
    checks = "expectations:\n" + "".join(f"  - {one}\n" for one in taken)
    assert with_argument_types(_with_checks(checks)) == []


@pytest.mark.filterwarnings("ignore:Passing a string to the row_condition:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The condition_parser parameter:DeprecationWarning")
def test_no_argument_of_any_expectation_is_repeated(gx: Any) -> None:
    found = 0
    for name in known_expectations():
        kind = getattr(gx.expectations, name)
        for argument in kind.__fields__.keys() - NO_ARGUMENTS:
            for value in ("%Q hunter2", ["hunter2"], [["hunter2"]], {"hunter2": 1}):
                try:
                    kind(**{argument: value})
                except ValueError as fault:
                    said = dict(refusals(fault, {argument: value}))
                    assert "hunter2" not in " ".join(said.values()), (name, argument)
                    found += any(place[:1] == (argument,) for place in said)
    assert found > 500


def _with_checks(content: str) -> JobDefinition:
    files = {"job.yaml": JOB_YAML, "prompt.md": PROMPT, "output.py": OUTPUT, "checks.yaml": content}
    return JobDefinition("notes", {name: text.encode() for name, text in files.items()})
