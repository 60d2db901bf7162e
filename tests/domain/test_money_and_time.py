"""Prices, receipts, estimates and waits."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmill.domain.backoff import retry_delay_s
from nightmill.domain.estimate import estimate
from nightmill.domain.pricing import Price, batch_cost, list_cost, price_on
from nightmill.domain.receipt import Tokens, receipt

TOKENS = st.integers(0, 10**9)
PRICE = Price("m", date(2026, 1, 1), Decimal("2"), Decimal("0.5"), Decimal("8"), Decimal("0.5"))


def test_the_price_in_force_is_the_newest_one_that_has_begun() -> None:
    later = Price("m", date(2026, 6, 1), Decimal("1"), Decimal("1"), Decimal("1"), Decimal("0"))
    other = Price("n", date(2026, 1, 1), Decimal("9"), Decimal("9"), Decimal("9"), Decimal("0"))
    prices = [later, other, PRICE]
    assert price_on(prices, "m", date(2026, 5, 31)) == PRICE
    assert price_on(prices, "m", date(2026, 6, 1)) == later
    assert price_on(prices, "m", date(2025, 12, 31)) is None
    assert price_on(prices, "unknown", date(2026, 6, 1)) is None


def test_cached_tokens_are_counted_once_at_their_own_price() -> None:
    assert list_cost(PRICE, 1_000_000, 400_000, 100_000) == Decimal("1.2") + Decimal("0.2") + Decimal("0.8")
    assert batch_cost(PRICE, 1_000_000, 400_000, 100_000) == Decimal("1.1")


def test_a_batch_discount_halves_the_prices_of_a_cache_too() -> None:
    cached = replace(PRICE, cached_input_per_million=Decimal("0.2"), cache_write_per_million=Decimal("4"))
    at_list = Decimal("1.0") + Decimal("0.04") + Decimal("1.2") + Decimal("0.8")  # 0.5M plain, 0.2M read, 0.3M written
    assert list_cost(cached, 1_000_000, 200_000, 100_000, 300_000) == at_list
    assert batch_cost(cached, 1_000_000, 200_000, 100_000, 300_000) == at_list / 2


@given(TOKENS, TOKENS, TOKENS, TOKENS)
def test_a_receipt_adds_up_to_the_last_digit(prompt: int, completion: int, again: int, answered: int) -> None:
    made = receipt(PRICE, Tokens(3, prompt, completion, 0, 0), Tokens(2, again, answered, 0, 0))
    assert made.paid + made.saved_by_batch == made.list_price
    assert made.saved_by_reuse == batch_cost(PRICE, again, 0, answered)
    assert made.calls == 3
    assert min(made.paid, made.saved_by_batch, made.saved_by_reuse) >= 0


def planned(**changes: Any) -> Any:
    values: dict[str, Any] = {
        "planned": 100, "to_send": 60, "reused": 30, "shards": 4, "prompt_tokens": 600_000, "output_reserve": 1_000,
        "price": PRICE, "enqueued_cap": None, "turnaround_s": 3600.0,
    }  # fmt: skip
    return estimate(**(values | changes))


def test_an_estimate_prices_the_reserve_of_every_request() -> None:
    made = planned()
    assert (made.settled, made.to_send, made.reserved_output_tokens) == (40, 60, 60_000)
    assert made.list_price == Decimal("1.2") + Decimal("0.48")
    assert made.batch_price == made.list_price / 2


@pytest.mark.parametrize(
    ("changes", "waves"),
    [
        ({}, 1),
        ({"enqueued_cap": 600_000}, 1),
        ({"enqueued_cap": 599_999}, 2),
        ({"enqueued_cap": 1}, 600_000),
        ({"to_send": 0, "prompt_tokens": 0, "enqueued_cap": 10}, 0),
    ],
)
def test_waves_are_what_the_enqueued_limit_forces(changes: dict[str, Any], waves: int) -> None:
    assert planned(**changes).waves == waves
    assert planned(**changes).expected_seconds == waves * 3600


def test_a_model_without_a_price_has_an_unknown_one_and_not_a_price_of_zero() -> None:
    made = planned(price=None)
    assert made.list_price is None
    assert json.loads(json.dumps(made.as_json()))["batch_price"] is None
    assert Decimal(json.loads(json.dumps(planned().as_json()))["batch_price"]) == Decimal("0.84")


@given(st.integers(1, 10_000), st.floats(0, 600), st.floats(0, 86_400), st.floats(0, 1))
def test_a_retry_waits_a_drawn_share_of_a_time_that_never_shrinks(
    failures: int, base: float, cap: float, draw: float
) -> None:
    full = retry_delay_s(failures, base, cap, 1)
    assert full <= cap
    assert retry_delay_s(failures, base, cap, draw) == draw * full
    assert retry_delay_s(failures + 1, base, cap, 1) >= full


def test_the_wait_doubles_up_to_the_cap() -> None:
    assert [retry_delay_s(n, 30, 200, 1) for n in (1, 2, 3, 4, 5)] == [30, 60, 120, 200, 200]
