"""Which limits of `compare` a result breaks, slice by slice: a failing tenant does not hide in a good average."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Literal

from nightmill.domain.comparison import FieldRule, Part, Side, Slice
from nightmill.domain.field_measures import Measure
from nightmill.domain.intervals import Interval, for_each_of, mean, share
from nightmill.jobs.settings.gate_settings import Compare

LimitName = Literal[
    "max_gone_share", "max_changed_share", "max_accuracy_drop", "min_accuracy", "max_citation_drop",
    "max_reject_rate", "max_review_rate", "max_cost_increase",
]  # fmt: skip
_WORDS: dict[LimitName, str] = {
    "max_gone_share": "{seen} of the rows are gone",
    "max_changed_share": "{seen} of the rows that stayed have changed{in_field}",
    "max_accuracy_drop": "the accuracy{of_field} fell by {seen}",
    "min_accuracy": "the accuracy{of_field} is {seen}",
    "max_citation_drop": "the share of rows with a citation fell by {seen}",
    "max_reject_rate": "{seen} of the items gave up",
    "max_review_rate": "{seen} of the items are in review",
    "max_cost_increase": "an accepted item costs {seen} more",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One limit that one slice breaks. `field` is None where it is about whole rows or items."""

    where: Slice
    limit: LimitName
    field: str | None
    seen: Interval
    allowed: float

    def __str__(self) -> str:
        """`tenant acme: the accuracy of pages fell by 42% (at least 30%, 40 counted; max_accuracy_drop is 2%)`."""
        told = _WORDS[self.limit].format(
            seen=f"{self.seen.value:.1%}",
            of_field=f" of {self.field}" if self.field else "",
            in_field=f" in {self.field}" if self.field else "",
        )
        bound = f"at most {self.seen.high:.1%}" if self.limit == "min_accuracy" else f"at least {self.seen.low:.1%}"
        sure = "" if self.where.by == "all" else f"{bound}, "
        return f"{self.where}: {told} ({sure}{self.seen.items:,} counted; {self.limit} is {self.allowed:.1%})"


def judge(settings: Compare, rules: Sequence[FieldRule], parts: Mapping[Slice, Part]) -> list[Finding]:
    """What is broken, all items first, then by slice."""
    many = Counter(where.by for where in parts)
    order = sorted(parts, key=lambda one: (one.by != "all", one))
    return [
        finding
        for where in order
        for finding in _of_part(settings, rules, where, parts[where], for_each_of(settings.confidence, many[where.by]))
        if _breaks(settings, finding)
    ]


def _breaks(settings: Compare, one: Finding) -> bool:
    lowest = one.limit == "min_accuracy"
    if one.where.by == "all":
        return one.seen.value < one.allowed if lowest else one.seen.value > one.allowed
    if one.seen.items < settings.min_slice_items:
        return False
    return one.seen.high < one.allowed if lowest else one.seen.low > one.allowed


def _of_part(
    settings: Compare, rules: Sequence[FieldRule], where: Slice, part: Part, confidence: float
) -> Iterator[Finding]:
    """Every limit that is set, with what this slice shows of it."""
    seen: list[tuple[LimitName, Interval | None]] = [
        ("max_gone_share", share(part.gone, part.rows_before, confidence)),
        ("max_changed_share", share(part.changed, part.kept, confidence)),
        ("max_citation_drop", citation_drop(part, confidence)),
        ("max_reject_rate", share(part.new.rejected, part.new.wanted, confidence)),
        ("max_review_rate", share(part.new.in_review, part.new.wanted, confidence)),
        ("max_cost_increase", cost_increase(part.old, part.new, confidence)),
    ]
    for name, interval in seen:
        allowed = settings.limit(name)
        if interval is not None and allowed is not None:
            yield Finding(where, name, None, interval, allowed)
    for rule in rules:
        yield from _of_field(settings, rule, where, part, confidence)


def _of_field(settings: Compare, rule: FieldRule, where: Slice, part: Part, confidence: float) -> Iterator[Finding]:
    own = settings.fields.get(rule.name)
    if own is not None and own.max_changed_share is not None:
        interval = share(part.field_changed[rule.name], part.kept, confidence)
        if interval is not None:
            yield Finding(where, "max_changed_share", rule.name, interval, own.max_changed_share)
    lowest, most = settings.limit("min_accuracy", rule.name), settings.limit("max_accuracy_drop", rule.name)
    if lowest is not None and (interval := accuracy(rule, part.scores.get(rule.name), confidence)):
        yield Finding(where, "min_accuracy", rule.name, interval, lowest)
    if most is not None and (interval := mean(part.drops.get(rule.name, {}), confidence)):
        yield Finding(where, "max_accuracy_drop", rule.name, interval, most)


def accuracy(rule: FieldRule, scores: Counter[float] | None, confidence: float) -> Interval | None:
    """The mean score of a field: a share where each answer is right or wrong, a mean where it can be partly right."""
    if not scores:
        return None
    if rule.measure is Measure.SET_F1:
        return mean(scores, confidence)
    return share(scores[1.0], scores.total(), confidence)


def citation_drop(part: Part, confidence: float) -> Interval | None:
    """By how much the share of rows with a citation fell."""
    now, then = share(part.cited, part.rows, confidence), share(part.cited_before, part.rows_before, confidence)
    if now is None or then is None:
        return None
    return Interval(then.value - now.value, then.low - now.high, then.high - now.low, min(now.items, then.items))


def cost_increase(old: Side, new: Side, confidence: float) -> Interval | None:
    """By what share an accepted item that was asked for costs more. None where nobody knows the price, or where one of
    the batches asked for nothing."""
    before, now = cost_per_fresh(old, confidence), cost_per_fresh(new, confidence)
    if before is None or now is None or before.value <= 0:
        return None
    lowest = now.low / before.high - 1
    highest = now.high / before.low - 1 if before.low > 0 else float("inf")
    return Interval(now.value / before.value - 1, lowest, highest, min(before.items, now.items))


def cost_per_fresh(side: Side, confidence: float) -> Interval | None:
    """US dollars per item that was asked for and accepted, what failed included; the interval is the usual one of a
    mean."""
    if side.fresh == 0 or side.cost <= 0:
        return None
    value = side.cost / side.fresh
    spread = max(0.0, side.cost_squares / side.fresh - value * value)
    half = NormalDist().inv_cdf(1 - (1 - confidence) / 2) * sqrt(spread / side.fresh)
    return Interval(value, max(0.0, value - half), value + half, side.fresh)


def lost_share(kept: int, shown: int) -> float:
    """The share of the shown rows that a new result does not have; 0 where nothing is shown."""
    return (shown - kept) / shown if shown else 0.0
