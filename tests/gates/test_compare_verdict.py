"""Which limits a result breaks: the whole batch by its numbers, a slice by what is sure of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmill.domain.comparison import ALL, BANDS, Cell, FieldRule, Part, Rows, Side, Slice, Tally, band_name
from nightmill.domain.field_measures import Measure
from nightmill.gates.compare_details import MOST_SLICES, details
from nightmill.gates.compare_verdict import cost_increase, judge, lost_share
from nightmill.jobs.settings.gate_settings import Compare

PAGES = FieldRule("pages", Measure.EXACT)
LABELS = FieldRule("labels", Measure.SET_F1)
EVERY = frozenset({"tenant", "domain", "length"})


def settings(**limits: Any) -> Compare:
    """Only these limits."""
    off = {"max_gone_share": None, "max_accuracy_drop": None}
    return Compare.model_validate({**off, **limits})


def broken(chosen: Compare, parts: dict[Slice, Part]) -> list[tuple[str, str, str]]:
    return [(one.where.by, one.where.name, one.limit) for one in judge(chosen, (PAGES, LABELS), parts)]


def scored(before: int, now: int, items: int) -> Part:
    """A slice with so many right answers of `items`, before and now; what is right now was right before."""
    drops = Counter({1.0: before - now, 0.0: items - (before - now)})
    scores = {"pages": Counter({1.0: now, 0.0: items - now})}
    return Part(scores=scores, before={"pages": Counter({1.0: before, 0.0: items - before})}, drops={"pages": drops})


def test_a_clear_failure_of_one_tenant_stops_and_bad_luck_of_a_small_one_does_not() -> None:
    parts = {
        ALL: scored(100_000, 99_950, 100_000),
        Slice("tenant", "broken"): scored(40, 10, 40),
        Slice("tenant", "unlucky"): scored(40, 38, 40),
        Slice("tenant", "tiny"): scored(3, 0, 3),
        **{Slice("tenant", f"fine {n}"): scored(40, 40, 40) for n in range(1_000)},
    }
    assert broken(settings(max_accuracy_drop=0.02), parts) == [("tenant", "broken", "max_accuracy_drop")]


def test_the_whole_batch_is_judged_by_its_number_and_a_slice_by_its_bound() -> None:
    both = {ALL: Part(gone=6, kept=94), Slice("tenant", "a"): Part(gone=6, kept=94)}
    assert broken(settings(max_gone_share=0.05), both) == [("all", "", "max_gone_share")]
    assert broken(settings(max_gone_share=0.06), both) == []


def test_the_least_accuracy_of_a_slice_is_missed_only_where_it_surely_is() -> None:
    parts = {ALL: scored(95, 95, 100), Slice("tenant", "a"): scored(17, 17, 20), Slice("tenant", "b"): scored(5, 5, 20)}
    assert broken(settings(min_accuracy=0.9), parts) == [("tenant", "b", "min_accuracy")]
    assert broken(settings(min_accuracy=0.96), parts)[0] == ("all", "", "min_accuracy")


def test_a_field_has_limits_of_its_own() -> None:
    parts = {ALL: Part(kept=100, changed=50, field_changed=Counter(pages=10, labels=50))}
    own = settings(fields={"pages": {"max_changed_share": 0.05}, "labels": {"max_changed_share": 0.6}})
    (finding,) = judge(own, (PAGES, LABELS), parts)
    assert str(finding) == (
        "all items: 10.0% of the rows that stayed have changed in pages (100 counted; max_changed_share is 5.0%)"
    )


def test_each_limit_stops_a_batch_that_breaks_it() -> None:
    new = Side(items=100, fresh=50, accepted=50, rejected=30, in_review=20, cost=10, cost_squares=2)
    old = Side(items=100, fresh=100, accepted=100, cost=10, cost_squares=1)
    part = Part(new=new, old=old, added=10, gone=50, kept=40, changed=20, cited=10, cited_before=80)
    part.drops["pages"] = part.scores["pages"] = Counter({0.5: 10})
    strict = Compare(
        max_gone_share=0.1, max_changed_share=0.1, max_accuracy_drop=0.1, min_accuracy=0.9, max_citation_drop=0.1,
        max_reject_rate=0.1, max_review_rate=0.1, max_cost_increase=0.5,
    )  # fmt: skip
    assert {name for _, _, name in broken(strict, {ALL: part})} == {
        name for name in Compare.model_fields if name.startswith(("max_", "min_a"))
    }
    assert broken(settings(), {ALL: part}) == []


def test_nothing_to_compare_with_breaks_no_limit_of_change() -> None:
    part = Part(new=Side(items=10, accepted=10, fresh=10, cost=1, cost_squares=1), added=10)
    lenient = settings(max_gone_share=0, max_changed_share=0, max_citation_drop=0, max_cost_increase=0)
    assert broken(lenient, {ALL: part}) == []


def test_a_cost_is_compared_where_both_batches_asked_for_something_that_has_a_price() -> None:
    bought = Side(fresh=10, cost=2, cost_squares=0.4)
    rise = cost_increase(Side(fresh=10, cost=1, cost_squares=0.1), bought, 0.95)
    assert rise is not None
    assert (rise.value, rise.low, rise.high) == pytest.approx((1, 1, 1))
    assert cost_increase(Side(fresh=0, cost=0), bought, 0.95) is None
    assert cost_increase(Side(fresh=10), bought, 0.95) is None


def test_what_is_lost_is_a_share_of_what_is_shown() -> None:
    assert (lost_share(25, 100), lost_share(0, 0), lost_share(100, 100)) == (0.75, 0, 0)


CELLS = st.builds(Cell, st.sampled_from("abc"), st.sampled_from("xy"), st.none() | st.integers(0, len(BANDS)))
ROWS = st.lists(
    st.builds(
        Rows, CELLS, is_new=st.booleans(), is_old=st.booleans(), cited=st.booleans(), cited_before=st.booleans(),
        differs=st.none(), old=st.none(), new=st.none(), count=st.integers(1, 100),
    )
)  # fmt: skip


@given(ROWS)
def test_the_slices_of_a_kind_add_up_to_all_items(rows: list[Rows]) -> None:
    tally = Tally((), EVERY)
    for one in rows:
        tally.add_rows(one)
    for by in ("tenant", "domain"):
        parts = [part for where, part in tally.parts.items() if where.by == by]
        if parts:
            assert sum(part.added for part in parts) == tally.parts[ALL].added
            assert sum(part.gone for part in parts) == tally.parts[ALL].gone
            assert len(parts) > 1


def test_a_change_is_one_as_its_measure_sees_it() -> None:
    tally = Tally((PAGES, LABELS), frozenset())
    cell = Cell("", "", 0)
    both = {"is_new": True, "is_old": True, "cited": False, "cited_before": False}
    tally.add_rows(Rows(cell, differs=[True, False], old={"labels": None}, new={"labels": None}, count=7, **both))
    tally.add_rows(
        Rows(cell, differs=[False, True], old={"labels": ["a", "b"]}, new={"labels": ["b", "A"]}, count=1, **both)
    )
    tally.add_rows(Rows(cell, differs=[True, True], old={"labels": ["a"]}, new={"labels": ["b"]}, count=1, **both))
    assert (tally.parts[ALL].kept, tally.parts[ALL].changed) == (9, 8)
    assert tally.parts[ALL].field_changed == {"pages": 8, "labels": 1}


def test_a_length_has_a_name() -> None:
    assert [band_name(one) for one in (0, 1, len(BANDS))] == [
        "under 250 tokens", "250 to 999 tokens", "64,000 tokens and more"
    ]  # fmt: skip


def test_of_thousands_of_slices_the_broken_ones_and_the_largest_are_recorded() -> None:
    parts = {ALL: Part(added=10**6)} | {Slice("tenant", f"t{n:04}"): Part(added=n) for n in range(3_000)}
    parts[Slice("tenant", "t0001")] = Part(gone=50, kept=0)
    findings = judge(settings(max_gone_share=0.1), (), parts)
    told = details((), parts, findings, 0.95)
    assert len(told["slices"]) == MOST_SLICES + 1
    assert told["slices_left_out"] == 3_000 - MOST_SLICES
    assert [one["name"] for one in told["slices"][:3]] == ["", "t0001", "t2999"]
