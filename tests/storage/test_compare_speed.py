"""What a comparison costs: its queries read each row once, and only the partitions of the two batches."""

from __future__ import annotations

import time
from typing import Any

import pytest
from support.figures import note
from support.ledger import Ledger

from nightmill.domain.comparison import ALL, FieldRule, Tally
from nightmill.domain.field_measures import Measure
from nightmill.storage import comparison

SIZES = [2_000, pytest.param(100_000, marks=pytest.mark.slow)]
EXACT = (FieldRule("title", Measure.EXACT), FieldRule("pages", Measure.EXACT))
CLOSER = (FieldRule("title", Measure.NORMALISED), FieldRule("pages", Measure.NUMERIC))


@pytest.mark.parametrize("rules", [EXACT, CLOSER], ids=["exact", "measured"])
@pytest.mark.parametrize("items", SIZES)
def test_a_comparison_of_100k_rows_takes_seconds(ledger: Ledger, items: int, rules: Any) -> None:
    """The titles of all rows differ: nothing changes more."""
    first, second = ledger.validating(items), ledger.validating(items)
    ledger.publish(first)
    if rules is CLOSER:
        ledger.sql("update nightmill.rows_notes set title = title || repeat(source_id, 20)")
    ledger.sql("analyze")
    tally = Tally(rules, frozenset({"tenant", "domain", "length"}))
    with ledger.writer() as conn:
        began = time.monotonic()
        groups = 0
        for one in comparison.rows(conn, comparison.of_view(conn, second, first.batch_id), rules):
            tally.add_rows(one)
            groups += 1
        for cell, side in comparison.items(conn, second.batch_id, None):
            tally.add_items(cell, side, new=True)
        took = time.monotonic() - began
    whole = tally.parts[ALL]
    assert (whole.kept, whole.changed, whole.new.accepted) == (items, items, items)
    assert groups == (1 if rules is EXACT else items)
    note(f"compare: {items:,} changed rows of two fields, {rules[0].measure}: {took:.2f} s")
    assert took < (1 if items < 10_000 else 10)
