"""Which dead letters somebody means, and a job's limits on them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nightmill.domain.errors import ConfigError
from nightmill.jobs.rules.dead_letters import DeadLetterFilter, breaches, by_reason
from nightmill.jobs.settings.job import DeadLetterLimits

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"classes": ["input", "output"], "codes": ["schema"], "tenants": [""], "ids": ["a", "b"]},
        {"since": "2026-05-01T12:00:00Z"},
    ],
)
def test_a_choice_survives_the_way_through_json(given: dict[str, Any]) -> None:
    assert DeadLetterFilter.of_json(given).as_json() == given


def test_no_choice_is_the_choice_of_all() -> None:
    assert DeadLetterFilter.of_json(None) == DeadLetterFilter()
    assert set(DeadLetterFilter().conditions.values()) == {None}


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"classes": ["CANARY"]}, "classes.0"),
        ({"colour": "CANARY"}, "colour"),
        ({"since": "2026-05-01T12:00:00"}, "since"),
        ({"ids": "CANARY"}, "ids"),
        ("CANARY", "it"),
    ],
)
def test_a_choice_that_is_not_understood_names_the_key_and_repeats_no_value(given: Any, word: str) -> None:
    with pytest.raises(ConfigError, match=f"not understood: {word}") as caught:
        DeadLetterFilter.of_json(given)
    assert "CANARY" not in str(caught.value)


def test_limits_hold_up_to_their_value() -> None:
    limits = DeadLetterLimits(max_age_h=24, max_count=2)
    assert breaches(limits, 2, NOW - timedelta(hours=24), NOW) == []
    assert breaches(limits, 3, NOW - timedelta(hours=25), NOW) == [
        "3 dead letters, more than dead_letters.max_count 2",
        "the oldest dead letter is 25.0 h old, more than dead_letters.max_age_h 24",
    ]
    assert breaches(limits, 0, None, NOW) == []
    assert breaches(DeadLetterLimits(), 10**6, NOW - timedelta(days=900), NOW) == []


def test_reasons_are_named_with_their_numbers() -> None:
    assert by_reason({("output", "schema"): 1200, ("input", "over_context"): 1}) == (
        "1,200 output/schema, 1 input/over_context"
    )
    assert by_reason({}) == "none"
