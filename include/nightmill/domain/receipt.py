"""What a batch cost, and what was saved."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from nightmill.domain.pricing import Price, batch_cost, list_cost
from nightmill.domain.wording import pluralised


@dataclass(frozen=True, slots=True)
class Tokens:
    """Summed usage. Tokens read from a prompt cache (`cached`) and written to it (`cache_written`) are part of the
    prompt, `reasoning` is part of the completion.

    `estimated` counts the requests whose usage the provider did not report, and of which the prompt is the manifest's.
    `odd` counts requests, and `odd_reports` provider batches, whose usage cannot be: nothing here is made of it.
    """

    requests: int
    prompt: int
    completion: int
    cached: int
    estimated: int
    cache_written: int = 0
    reasoning: int = 0
    odd: int = 0
    odd_reports: int = 0

    @property
    def can_be(self) -> bool:
        """Whether a price can be made of it. A difference of two reports, such as what no attempt explains, may have
        more tokens from the cache than in the prompt."""
        counts = (self.prompt, self.completion, self.cached, self.cache_written)
        return min(counts) >= 0 and self.cached + self.cache_written <= self.prompt


def in_words(used: Tokens) -> str:
    """`9,520 in (1,024 from the cache), 240 out (64 reasoning)`."""
    of_cache = [f"{used.cached:,} from the cache"] if used.cached else []
    of_cache += [f"{used.cache_written:,} written to it"] if used.cache_written else []
    read = f"{used.prompt:,} in" + (f" ({', '.join(of_cache)})" if of_cache else "")
    return f"{read}, {used.completion:,} out" + (f" ({used.reasoning:,} reasoning)" if used.reasoning else "")


def odd_in_words(used: Tokens) -> list[str]:
    """A line about usage that cannot be and where to look at it; none where all can be."""
    told = [pluralised(used.odd, "request")] if used.odd else []
    told += [f"the totals of {pluralised(used.odd_reports, 'provider batch')}"] if used.odd_reports else []
    if not told:
        return []
    where = "nightmill.attempt.odd_usage" if used.odd else "nightmill.provider_batch.usage"
    return [f"usage that cannot be, of {' and '.join(told)}: kept in {where}, no price is made of it"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """US dollars. paid = list_price - saved_by_batch; saved_by_reuse is what asking again would have cost."""

    calls: int
    list_price: Decimal
    paid: Decimal
    saved_by_batch: Decimal
    saved_by_reuse: Decimal


def cost(price: Price, used: Tokens) -> Decimal:
    """US dollars through the provider's Batch API."""
    return batch_cost(price, used.prompt, used.cached, used.completion, used.cache_written)


def receipt(price: Price, spent: Tokens, reused: Tokens) -> Receipt:
    """The receipt of a batch from what its attempts used and what its reused answers had used."""
    at_list = list_cost(price, spent.prompt, spent.cached, spent.completion, spent.cache_written)
    paid = cost(price, spent)
    return Receipt(
        calls=spent.requests,
        list_price=at_list,
        paid=paid,
        saved_by_batch=at_list - paid,
        saved_by_reuse=cost(price, reused),
    )
