"""Cutting a batch into contiguous, token-balanced shards. Pure: the caller reads the weights and stores the ranges."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

MAX_SHARDS = 256  # far below Airflow's max_map_length of 1024
TARGET_SHARD_TOKENS = 2_000_000


@dataclass(frozen=True, slots=True)
class ShardRange:
    """Items first..last (both included), as positions in the weights that were cut. `weight` is in tokens."""

    first: int
    last: int
    weight: int


def shard_count(items: int, tokens: int, wanted: int | None, target_tokens: int = TARGET_SHARD_TOKENS) -> int:
    """How many shards to cut: what the job wants, else one per `target_tokens`, between 1 and 256, never more than
    there are items."""
    if items == 0:
        return 0
    count = wanted if wanted is not None else -(-tokens // target_tokens)
    return max(1, min(count, MAX_SHARDS, items))


def cut(weights: Iterable[int], count: int) -> list[ShardRange]:
    """At most `count` contiguous ranges whose heaviest weighs as little as any contiguous cut allows.

    Among the cuts that reach this least maximum the one is taken whose boundaries lie closest to equal shares, so
    that the last range is not a small remainder. Cost: count * log(items) * log(total);
    memory: 8 bytes per item.
    """
    sums = array("q", accumulate(weights, initial=0))
    items = len(sums) - 1
    if not items:
        return []
    count = min(count, items)
    capacity = _least_capacity(sums, count)
    latest_starts = _latest_starts(sums, count, capacity)
    ranges: list[ShardRange] = []
    start = 0
    for index in range(count):
        left = count - index - 1
        furthest = bisect_right(sums, sums[start] + capacity) - 1
        ideal = bisect_left(sums, sums[-1] * (index + 1) / count)
        end = min(max(ideal, latest_starts[left], start + 1), furthest, items - left)
        if _closer(sums, end - 1, end, sums[-1] * (index + 1) / count) and end - 1 >= max(
            latest_starts[left], start + 1
        ):
            end -= 1
        ranges.append(ShardRange(start, end - 1, sums[end] - sums[start]))
        start = end
    return ranges


def _closer(sums: Sequence[int], candidate: int, than: int, target: float) -> bool:
    return abs(sums[candidate] - target) < abs(sums[than] - target)


def _least_capacity(sums: Sequence[int], count: int) -> int:
    """The least weight that `count` contiguous ranges must be allowed to reach."""
    heaviest = max(after - before for before, after in pairwise(sums))
    low, high = max(heaviest, -(-sums[-1] // count)), sums[-1]
    while low < high:
        middle = (low + high) // 2
        if _ranges_needed(sums, middle, count) <= count:
            high = middle
        else:
            low = middle + 1
    return low


def _ranges_needed(sums: Sequence[int], capacity: int, limit: int) -> int:
    """Ranges that a greedy fill needs under `capacity`; stops counting above `limit`."""
    start, needed, items = 0, 0, len(sums) - 1
    while start < items and needed <= limit:
        start = bisect_right(sums, sums[start] + capacity) - 1
        needed += 1
    return needed if start == items else limit + 1


def _latest_starts(sums: Sequence[int], count: int, capacity: int) -> list[int]:
    """For each number of remaining ranges, the first position from which they can hold all the rest."""
    starts = [len(sums) - 1]
    for _ in range(count - 1):
        starts.append(bisect_left(sums, sums[starts[-1]] - capacity))
    return starts
