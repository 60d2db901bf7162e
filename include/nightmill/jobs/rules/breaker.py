"""The circuit breaker of a batch: one mistake that all requests share must not cost all of them.

A parameter that the model does not take, a prompt whose answers are never valid: the first requests that settle show
it. What another attempt may mend, as errors of the provider's server or answers that get more room, is asked for once
more by a few requests at first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from nightmill.domain.failure_rules import CONFLICTING_LINES
from nightmill.domain.failures import FailureClass
from nightmill.jobs.settings.retry_settings import Breaker

FEWEST = 10  # of fewer requests, each may well be wrong by itself
_PAID = frozenset({"empty_answer", "provider_protocol_error", CONFLICTING_LINES})  # executed all the same
Failed = Mapping[tuple[str, str], int]  # (class, code) -> requests


class Verdict(StrEnum):
    """What a batch may send next."""

    WATCHING = "watching"  # too few have settled: as before
    PASSED = "passed"  # it is not one mistake: everything
    PROBING = "probing"  # another attempt may mend it: a few requests, then the rest
    OPEN = "open"  # nothing, until a person has looked


@dataclass(frozen=True, slots=True)
class Count:
    """Requests of a batch that settled. Left out is what says nothing about the requests: what was never executed, was
    lost, or failed for want of capacity."""

    accepted: int
    failed: Failed

    @property
    def settled(self) -> int:
        return self.accepted + sum(self.failed.values())

    @property
    def commonest(self) -> tuple[str, int]:
        """The code that most failed with, and how many; nothing failed = ("", 0)."""
        by_code: Counter[str] = Counter()
        for (_, code), requests in self.failed.items():
            by_code[code] += requests
        return max(by_code.items(), key=lambda one: (one[1], one[0]), default=("", 0))

    def __add__(self, other: Count) -> Count:
        return Count(self.accepted + other.accepted, Counter(self.failed) + Counter(other.failed))


def needed(rules: Breaker, to_send: int) -> int | None:
    """How many requests must have settled before anything is concluded; None where nothing ever is."""
    if rules.requests is None or to_send < FEWEST:
        return None
    return max(FEWEST, min(rules.requests, to_send))


def judge(
    count: Count, rules: Breaker, to_send: int, *, probing: bool, mending: Collection[tuple[str, str]] = ()
) -> Verdict:
    """The verdict on what settled since the batch was started, cleared, or began to probe. `mending` are the (class,
    code) that the next attempt is made otherwise for, such as an answer that gets more room."""
    need = needed(rules, to_send)
    if need is None:
        return Verdict.PASSED
    if count.settled < (FEWEST if probing else need):
        return Verdict.PROBING if probing else Verdict.WATCHING
    code, requests = count.commonest
    alike = requests >= rules.failing_share * count.settled
    if count.accepted and not alike:
        return Verdict.PASSED
    guilty = [key for key in count.failed if key[1] == code] if alike else list(count.failed)
    passing = all((kind == FailureClass.TRANSIENT and of not in _PAID) or (kind, of) in mending for kind, of in guilty)
    return Verdict.PROBING if passing and not probing else Verdict.OPEN


def most_at_first(rules: Breaker, verdict: Verdict, to_send: int, settled: int, *, proven: bool) -> int | None:
    """How many requests may go out alone before the others; None where all may. `settled` are those since the batch was
    started, cleared, or began to probe. `proven`: the contract has an accepted answer."""
    if verdict is Verdict.PROBING:
        return None if rules.requests is None else max(1, rules.requests - settled)
    large = rules.pilot_above_items is not None and to_send > rules.pilot_above_items
    if verdict is not Verdict.WATCHING or proven or not large:
        return None
    return rules.pilot_items if not settled else min(rules.pilot_items, rules.requests or rules.pilot_items)
