"""What a plan will cost and how long it will take, before anything is paid; and how that compares with what came."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from nightmill.domain.pricing import Price, batch_cost, list_cost
from nightmill.domain.receipt import Tokens
from nightmill.domain.wording import dollars, duration, pluralised


@dataclass(frozen=True, slots=True)
class Estimate:
    """Items and tokens to send, their price in US dollars (None = the model has no price), and the waves that the
    account's enqueued-token limit forces. Output tokens are an upper bound: the reserve of every request. Of the
    settled items, which need no call, `reused` ones have an accepted answer already."""

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
    reused: int = 0

    @classmethod
    def of_json(cls, values: dict[str, Any]) -> Estimate:
        """The estimate that a batch keeps."""
        money = {name: Decimal(values[name]) if values[name] is not None else None for name in _MONEY}
        return cls(**values | money)

    def as_json(self) -> dict[str, Any]:
        """JSON-ready, money as strings."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: str(value) if isinstance(value, Decimal) else value for name, value in values.items()}


_MONEY = ("list_price", "batch_price")


def estimate(
    *,
    planned: int,
    to_send: int,
    reused: int,
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
        reused=reused,
    )


def described(plan: Estimate, sent_at: datetime | None = None) -> list[str]:
    """The estimate in words, one line each; with a time of sending also when it will have finished."""
    money = f"at most {dollars(plan.batch_price)} without retries, {dollars(plan.list_price)} at list price"
    lines = [
        f"estimate: {plan.to_send:,} of {pluralised(plan.planned, 'item')} to send in "
        f"{pluralised(plan.shards, 'shard')}; {plan.settled:,} settled without a call, {plan.reused:,} of them reused",
        f"tokens: {plan.prompt_tokens:,} in, up to {plan.reserved_output_tokens:,} out",
        f"price: {money if plan.batch_price is not None else 'unknown, the model has none in nightmill.price'}",
    ]
    if plan.to_send:
        at = f"{sent_at + timedelta(seconds=plan.expected_seconds):%Y-%m-%d %H:%M} UTC" if sent_at else ""
        about = f"about {duration(plan.expected_seconds)} at the expected turnaround"
        lines.append(f"finish: {pluralised(plan.waves, 'wave')}, {about}" + (f", {at} if sent now" if at else ""))
    return lines


def compared(plan: Estimate, spent: Tokens, paid: Decimal | None) -> list[str]:
    """The estimate against what came, in two lines. Retried requests are in what came and not in the estimate."""
    lines = [
        f"tokens, estimated and real: {plan.prompt_tokens:,} and {spent.prompt:,} in"
        f"{_apart(plan.prompt_tokens, spent.prompt)}, at most {plan.reserved_output_tokens:,} and "
        f"{spent.completion:,} out"
    ]
    if plan.batch_price is not None and paid is not None:
        lines.append(
            f"cost, estimated and real: at most {dollars(plan.batch_price)} without retries and {dollars(paid)}"
        )
    return lines


def _apart(estimated: int, real: int) -> str:
    return f" ({(real - estimated) / estimated:+.1%})" if estimated else ""
