"""How sure a number is: Wilson's interval of a share, the bootstrap's of a mean. Both are deterministic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

RESAMPLES = 2_000
SEED = 14
_DIGITS = 3  # of a score: so few values differ that a resample is one draw of how often each comes


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with the bounds between which it lies, `items` being what it was counted on."""

    value: float
    low: float
    high: float
    items: int


def share(count: int, of: int, confidence: float) -> Interval | None:
    """Wilson's score interval: never outside 0 to 1, and of use for few items too. None of nothing."""
    if of == 0:
        return None
    z = _z(confidence)
    value, spread = count / of, z * z / of
    middle = (value + spread / 2) / (1 + spread)
    half = z * sqrt((value * (1 - value) + spread / 4) / of) / (1 + spread)
    low = 0.0 if count == 0 else max(0.0, min(value, middle - half))
    high = 1.0 if count == of else min(1.0, max(value, middle + half))
    return Interval(value, low, high, of)


def mean(scores: Mapping[float, int], confidence: float) -> Interval | None:
    """The percentile bootstrap's interval of a mean, from how often each score comes. None of nothing."""
    import numpy as np  # where it is needed only: it takes its time to be loaded

    rounded: dict[float, int] = {}
    for score, times in scores.items():
        rounded[round(score, _DIGITS)] = rounded.get(round(score, _DIGITS), 0) + times
    items = sum(rounded.values())
    if items == 0:
        return None
    value = sum(score * times for score, times in scores.items()) / items
    values = np.array(sorted(rounded))
    shares = np.array([rounded[one] for one in sorted(rounded)]) / items
    means = np.random.default_rng(SEED).multinomial(items, shares, size=RESAMPLES) @ values / items
    tail = (1 - confidence) / 2
    low, high = (float(one) for one in np.quantile(means, (tail, 1 - tail)))
    return Interval(value, min(value, low), max(value, high), items)


def for_each_of(confidence: float, many: int) -> float:
    """The confidence that each of `many` intervals needs so that all together have this one (Bonferroni): of a
    thousand tenants some look bad by chance."""
    return 1 - (1 - confidence) / max(1, many)


def _z(confidence: float) -> float:
    return NormalDist().inv_cdf(1 - (1 - confidence) / 2)
