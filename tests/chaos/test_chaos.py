"""Everything goes wrong at once and workers are killed: no item is lost, and nothing is paid that no fault forced."""

from __future__ import annotations

from collections import Counter

import pytest
from support.figures import note
from support.pipeline import Pipeline
from support.vendors import ANTHROPIC, OPENAI, Vendor, speak

from chaos.accounts import faults_met, tally
from chaos.run import chaos, prepare
from chaos.weather import STRIKES

ITEMS, SEED = 150, 20


VENDORS = [pytest.param(OPENAI, id="openai"), pytest.param(ANTHROPIC, id="anthropic", marks=pytest.mark.slow)]


@pytest.mark.parametrize("vendor", VENDORS)
def test_under_all_faults_and_kills_no_item_is_lost_and_none_is_executed_again_without_need(
    pipeline: Pipeline, vendor: Vendor
) -> None:
    speak(pipeline, vendor)
    prepare(pipeline, ITEMS)
    account = chaos(pipeline, SEED, seconds=240, life_s=2.5, strike_s=4.0)
    note(f"chaos, {vendor.adapter}: {account.figures}")
    assert account.wrong == []
    assert (account.items, account.lost, account.reexecuted_unforced) == (ITEMS, 0, 0)
    assert account.kills > 0
    assert account.forced > 0
    assert set(STRIKES) <= set(faults_met(pipeline))


def test_the_account_names_each_item_that_was_lost_paid_without_need_or_not_asked_again() -> None:
    kinds = dict.fromkeys(range(6), "accepted") | {4: "dead_lettered"}
    spoilt = Counter({1: 1, 4: 2})
    due = Counter({0: 1, 1: 2, 2: 1, 3: 1, 4: 2, 5: 1})
    good = tally(6, kinds, spoilt, due)
    assert (good.wrong, good.accepted, good.dead_letters, good.forced, good.amplification) == ([], 5, 1, 2, 1.3333)

    assert tally(6, kinds, spoilt, due + Counter({2: 1})).reexecuted_unforced == 1
    assert tally(6, kinds, spoilt, due + Counter({2: 1})).wrong == ["item 2 (accepted): executed 2 times, not 1"]
    assert tally(6, kinds, spoilt, due - Counter({1: 1})).wrong == ["item 1 (accepted): executed 1 times, not 2"]
    lost = tally(7, kinds, spoilt, due)
    assert (lost.lost, lost.wrong) == (1, ["item 6 has no outcome"])
