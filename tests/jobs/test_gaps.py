"""Contracts for gaps: which are allowed, by which rule, and what is recorded and said of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nightmill.domain.failures import FailureClass
from nightmill.jobs.rules.gaps import Gap, completion, decide, due, facts, told
from nightmill.jobs.settings.gap_settings import GapClass, GapRule, Gaps

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WORDS = st.sampled_from(["a", "b", "c"])
GAPS = st.builds(
    Gap,
    bucket=st.sampled_from(["dead_lettered", "in_review", "cancelled"]),
    kind=st.none() | st.sampled_from(get_args(GapClass)),
    code=st.none() | WORDS,
    tenant=WORDS,
    required=st.booleans(),
    items=st.integers(1, 1000),
)
RULES = st.builds(
    GapRule,
    classes=st.lists(st.sampled_from(get_args(GapClass)), max_size=2),
    codes=st.lists(WORDS, min_size=1, max_size=2),
    tenants=st.lists(WORDS, max_size=2),
    show=st.sampled_from(["absent", "null_row", "previous"]),
    fill=st.sampled_from(["rerun", "never", "person by 17:00"]),
    searchable=st.booleans(),
)
SETTINGS = st.builds(Gaps, min_completion=st.floats(0, 1), rules=st.lists(RULES, max_size=4))


def gap(kind: str | None = "output", code: str | None = "schema", tenant: str = "", **other: object) -> Gap:
    made = {"bucket": "dead_lettered", "required": False, "items": 1} | other
    return Gap(kind=kind, code=code, tenant=tenant, **made)  # type: ignore[arg-type]


def test_the_classes_of_rules_are_those_that_an_item_can_end_with() -> None:
    assert set(get_args(GapClass)) == {str(one) for one in FailureClass} - {"capacity", "unknown"}


def test_all_or_nothing_is_the_default_and_allows_no_gap() -> None:
    assert Gaps().contract == "all_or_nothing"
    assert decide(Gaps(), {"accepted": 9, "excluded": 1}, []).allowed
    decision = decide(Gaps(), {"accepted": 9, "dead_lettered": 1}, [gap()])
    assert decision.why == ("1 gap, and job.yaml allows none (gaps.min_completion)",)


def test_without_rules_any_gap_is_allowed_down_to_the_limit_and_is_absent() -> None:
    settings = Gaps(min_completion=0.9)
    decision = decide(settings, {"accepted": 9, "dead_lettered": 1}, [gap()])
    assert (decision.allowed, decision.ruled[0].show, decision.ruled[0].fill) == (True, "absent", "rerun")
    below = decide(settings, {"accepted": 8, "dead_lettered": 2}, [gap(items=2)])
    assert below.why == ("completion 0.8000 is below gaps.min_completion 0.9000",)


def test_what_no_rule_fits_and_what_is_required_is_said() -> None:
    settings = Gaps(min_completion=0, rules=(GapRule(classes=("input",), tenants=("acme",)),))
    found = [gap("input", tenant="acme"), gap("input", tenant="other"), gap("input", tenant="acme", required=True)]
    decision = decide(settings, {"accepted": 1, "dead_lettered": 3}, found)
    assert decision.why == ("1 gap where source.columns.required is true", "no rule of gaps.rules fits 1 gap")


@given(SETTINGS, st.lists(GAPS, max_size=8), st.integers(0, 1000))
def test_a_required_item_is_never_missing_and_the_first_rule_that_fits_counts(
    settings: Gaps, gaps: list[Gap], accepted: int
) -> None:
    counts = {"accepted": accepted, "dead_lettered": sum(one.items for one in gaps)}
    decision = decide(settings, counts, gaps)
    assert [one.gap for one in decision.ruled] == gaps
    for one in decision.ruled:
        if one.gap.required:
            assert one.rule is None
            assert one.show == "absent"
        elif settings.rules:
            fitting = [
                rule
                for rule in settings.rules
                if (not rule.classes or one.gap.kind in rule.classes)
                and (not rule.codes or one.gap.code in rule.codes)
                and (not rule.tenants or one.gap.tenant in rule.tenants)
            ]
            assert one.rule == (fitting[0] if fitting else None)
    expected = completion(counts) >= (settings.min_completion or 0) and all(one.rule for one in decision.ruled)
    assert decision.allowed == expected


@given(SETTINGS, st.lists(GAPS, max_size=150))
def test_the_facts_account_for_every_gap(settings: Gaps, gaps: list[Gap]) -> None:
    total = sum(one.items for one in gaps)
    found = facts(decide(settings, {"dead_lettered": total}, gaps), "notes", 7, {"dead_lettered": total}, {}, NOON)
    assert sum(one["items"] for one in found["gaps"]) + found["further_gaps"] == total
    assert sum(one["items"] for one in found["fill"]) == total
    assert found["readers"]["absent"] == total
    assert bool(told(found)) == bool(gaps)


def test_the_four_facts_are_told_in_plain_lines() -> None:
    rules = (
        GapRule(codes=("schema",), show="null_row", fill="person by 17:00", searchable=False),
        GapRule(classes=("input",), show="previous", fill="never"),
        GapRule(),
    )
    counts = {"accepted": 90, "reused": 6, "dead_lettered": 4, "excluded": 1}
    found = [gap(tenant="acme", items=2), gap("input", "too_long"), gap("transient", "lost")]
    decision = decide(Gaps(min_completion=0.9, rules=rules), counts, found)
    assert told(facts(decision, "notes", 7, counts, {"null_row": 2, "previous": 1}, NOON)) == [
        "accepted: 96 of 100 (96.00%)",
        "gap: 2 dead_lettered/output/schema of tenant acme, shown as null_row, fill: person by 17:00",
        "gap: 1 dead_lettered/input/too_long, shown as previous, fill: never",
        "gap: 1 dead_lettered/transient/lost, shown as absent, fill: rerun",
        "to list them: python -m nightmill dead-letters --batch 7",
        "to fill 2: a person, until 2026-03-01 17:00 UTC",
        "to fill 1: nothing, they stay open",
        "to fill 1: the next run asks again for transient ones, `python -m nightmill replay --job notes --batch 7` for "
        "the others",
        "readers: 2 null rows, 1 previous row, 1 item absent; not to be searched",
    ]


def test_a_batch_that_is_not_published_says_that_the_view_stays() -> None:
    counts = {"accepted": 9, "dead_lettered": 1}
    lines = told(facts(decide(Gaps(), counts, [gap()]), "notes", 7, counts, {}, NOON))
    assert lines[-1] == ("readers: the view stays where it was (1 gap, and job.yaml allows none (gaps.min_completion))")


@given(st.times(), st.datetimes(timezones=st.just(UTC), max_value=NOON.replace(tzinfo=None)))
def test_a_person_has_until_the_next_time_that_the_clock_shows_it(at: object, now: datetime) -> None:
    told_time = f"{at:%H:%M}"
    moment = due(f"person by {told_time}", now)
    assert moment is not None
    assert timedelta(0) < moment - now <= timedelta(days=1)
    assert f"{moment:%H:%M}" == told_time
    assert due("rerun", now) is due("never", now) is None


@pytest.mark.parametrize("fill", ["person", "person by noon", "person by 24:00", "later", ""])
def test_another_way_to_fill_is_refused(fill: str) -> None:
    with pytest.raises(ValidationError):
        GapRule(fill=fill)
