"""When two values of a field are the same, and how near an answer is to the known one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmill.domain.field_measures import Measure, differ, normalised, score, set_f1, usual

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = SCALARS | st.lists(SCALARS, max_size=5)
MEASURES = st.sampled_from([one for one in Measure if one is not Measure.IGNORED])


@given(MEASURES, VALUES)
def test_a_value_is_the_same_as_itself(measure: Measure, value: Any) -> None:
    assert not differ(measure, value, value)
    assert score(measure, value, value) == 1


@given(MEASURES, VALUES, VALUES)
def test_a_score_lies_between_0_and_1_and_a_change_is_one_both_ways(measure: Measure, one: Any, other: Any) -> None:
    assert 0 <= score(measure, one, other) <= 1
    assert differ(measure, one, other) == differ(measure, other, one)


@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    assert normalised(normalised(text)) == normalised(text)


@given(st.lists(st.text(), max_size=6))
def test_the_order_and_repetition_of_a_set_do_not_count(values: list[str]) -> None:
    assert set_f1(values, [*reversed(values), *values]) == 1


@pytest.mark.parametrize(
    ("measure", "one", "other", "tolerance", "same"),
    [
        (Measure.EXACT, "Acme", "acme", 0, False),
        (Measure.EXACT, 1, True, 0, False),
        (Measure.EXACT, 1, 1.0, 0, True),
        (Measure.EXACT, {"a": 1, "b": 2}, {"b": 2, "a": 1}, 0, True),
        (Measure.EXACT, None, None, 0, True),
        (Measure.NORMALISED, " “Acme\u00a0 Ltd.” ", "acme ltd", 0, True),
        (Measure.NORMALISED, "Straße", "STRASSE", 0, True),
        (Measure.NORMALISED, "１２", "12", 0, True),
        (Measure.NORMALISED, "?", "!", 0, False),
        (Measure.NORMALISED, "Acme Ltd", "Acme Inc", 0, False),
        (Measure.NUMERIC, 10.0, 10.05, 0.1, True),
        (Measure.NUMERIC, 10.0, 10.2, 0.1, False),
        (Measure.NUMERIC, "10.50", 10.5, 0, True),
        (Measure.NUMERIC, 0.1 + 0.2, 0.3, 0, True),
        (Measure.NUMERIC, None, 0, 5, False),
        (Measure.NUMERIC, True, 1, 0, False),
        (Measure.DATE, "2026-03-01", "2026-03-01T23:00:00+00:00", 0, True),
        (Measure.DATE, "2026-03-01", "2026-03-03", 1, False),
        (Measure.DATE, "2026-03-01", "2026-03-02", 1, True),
        (Measure.DATE, "soon", "soon", 0, True),
        (Measure.IGNORED, "one", "another", 0, True),
    ],
)
def test_what_counts_as_the_same(measure: Measure, one: Any, other: Any, tolerance: float, same: bool) -> None:
    assert differ(measure, one, other, tolerance) is not same


def test_a_list_is_scored_by_what_it_found_and_what_it_made_up() -> None:
    assert score(Measure.SET_F1, ["a", "b"], ["A", "c"]) == 0.5
    assert score(Measure.SET_F1, ["a"], ["a", "b", "c"]) == 0.5
    assert score(Measure.SET_F1, [], ["a"]) == 0
    assert score(Measure.SET_F1, [], []) == score(Measure.SET_F1, None, []) == 1


def test_a_list_of_known_answers_means_any_of_them_where_the_field_is_no_list() -> None:
    assert score(Measure.EXACT, "MIT", ["Apache-2.0", "MIT"]) == 1
    assert score(Measure.EXACT, ["MIT"], ["Apache-2.0", "MIT"]) == 0
    assert score(Measure.EXACT, "MIT", []) == 0


def test_a_field_that_nobody_says_anything_of_is_compared_by_its_type() -> None:
    kinds = ("text", "text[]", "double precision", "double precision[]", "numeric", "bigint", "date", "jsonb")
    assert [str(usual(kind)) for kind in kinds] == [
        "exact", "set_f1", "numeric", "exact", "numeric", "exact", "exact", "exact"
    ]  # fmt: skip
