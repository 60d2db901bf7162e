"""What a batch cost, and what was saved."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from nightmill.domain.pricing import Price, batch_cost, list_cost


@dataclass(frozen=True, slots=True)
class Tokens:
    """Summed usage. `estimated` counts the requests whose usage the provider did not report."""

    requests: int
    prompt: int
    completion: int
    cached: int
    estimated: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """US dollars. paid = list_price - saved_by_batch; saved_by_reuse is what asking again would have cost."""

    calls: int
    list_price: Decimal
    paid: Decimal
    saved_by_batch: Decimal
    saved_by_reuse: Decimal


def receipt(price: Price, spent: Tokens, reused: Tokens) -> Receipt:
    """The receipt of a batch from what its attempts used and what its reused answers had used."""
    at_list = list_cost(price, spent.prompt, spent.cached, spent.completion)
    paid = batch_cost(price, spent.prompt, spent.cached, spent.completion)
    return Receipt(
        calls=spent.requests,
        list_price=at_list,
        paid=paid,
        saved_by_batch=at_list - paid,
        saved_by_reuse=batch_cost(price, reused.prompt, reused.cached, reused.completion),
    )
