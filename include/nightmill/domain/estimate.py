"""What a plan will cost and how long it will take, before anything is paid."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from nightmill.domain.pricing import Price, batch_cost, list_cost


@dataclass(frozen=True, slots=True)
class Estimate:
    """Items and tokens to send, their price in US dollars (None = the model has no price), and the waves that the
    account's enqueued-token limit forces. Output tokens are an upper bound: the reserve of every request."""

    planned: int
    settled: int
    to_send: int
    shards: int
    prompt_tokens: int
    reserved_output_tokens: int
    list_price: Decimal | None
    batch_price: Decimal | None
    waves: int
    expected_seconds: float

    def as_json(self) -> dict[str, Any]:
        """JSON-ready, money as strings."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: str(value) if isinstance(value, Decimal) else value for name, value in values.items()}


def estimate(
    *,
    planned: int,
    to_send: int,
    shards: int,
    prompt_tokens: int,
    output_reserve: int,
    price: Price | None,
    enqueued_cap: int | None,
    turnaround_s: float,
) -> Estimate:
    """Price and waves of a plan. waves = ceil(prompt tokens / enqueued cap), each one turnaround long."""
    reserved = to_send * output_reserve
    waves = 0 if to_send == 0 else 1 if not enqueued_cap else max(1, -(-prompt_tokens // enqueued_cap))
    return Estimate(
        planned=planned,
        settled=planned - to_send,
        to_send=to_send,
        shards=shards,
        prompt_tokens=prompt_tokens,
        reserved_output_tokens=reserved,
        list_price=list_cost(price, prompt_tokens, 0, reserved) if price else None,
        batch_price=batch_cost(price, prompt_tokens, 0, reserved) if price else None,
        waves=waves,
        expected_seconds=waves * turnaround_s,
    )
