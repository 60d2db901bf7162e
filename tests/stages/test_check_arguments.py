"""Expectations that Great Expectations would refuse: the message names the nearest class or argument."""

from __future__ import annotations

from typing import Any

import pytest

from nightmill.domain.errors import ConfigError
from nightmill.domain.job import Expectation
from nightmill.stages import check_staging
from nightmill.validators.expectations import NO_ARGUMENTS, arguments_of, known_expectations


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
        ({"type": "ExpectColumnValuesToBeInSet", "column": "a"}, "value_set: value_error.missing"),
    ],
)
def test_an_expectation_that_cannot_be_made_is_named(gx: Any, check: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_staging._expectation(gx, Expectation.model_validate(check))
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
