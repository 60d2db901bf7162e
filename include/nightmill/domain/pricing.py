"""Prices and costs. Money is Decimal US dollars; prices are per million tokens and have an effective date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Price:
    """What one model costs from a day on. `batch_discount` is the share taken off through a Batch API (0.5 = half);
    what is written to a prompt cache costs as input does where it has no price of its own."""

    model: str
    effective_from: date
    input_per_million: Decimal
    cached_input_per_million: Decimal
    output_per_million: Decimal
    batch_discount: Decimal
    cache_write_per_million: Decimal | None = None


def price_on(prices: Sequence[Price], model: str, day: date) -> Price | None:
    """The price in force on a day, or None when the model has none: unknown is not zero."""
    known = [price for price in prices if price.model == model and price.effective_from <= day]
    return max(known, key=lambda price: price.effective_from, default=None)


def list_cost(
    price: Price, prompt_tokens: int, cached_tokens: int, completion_tokens: int, cache_write_tokens: int = 0
) -> Decimal:
    """Cost at list price. Tokens from and for the cache are part of the prompt tokens and are counted once."""
    fresh = prompt_tokens - cached_tokens - cache_write_tokens
    write_price = price.cache_write_per_million
    return (
        price.input_per_million * fresh
        + price.cached_input_per_million * cached_tokens
        + (price.input_per_million if write_price is None else write_price) * cache_write_tokens
        + price.output_per_million * completion_tokens
    ) / _MILLION


def batch_cost(
    price: Price, prompt_tokens: int, cached_tokens: int, completion_tokens: int, cache_write_tokens: int = 0
) -> Decimal:
    """Cost through the provider's Batch API."""
    at_list = list_cost(price, prompt_tokens, cached_tokens, completion_tokens, cache_write_tokens)
    return at_list * (1 - price.batch_discount)
