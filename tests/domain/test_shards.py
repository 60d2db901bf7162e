"""Cutting shards: contiguous, complete, and never heavier than the best contiguous cut."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.figures import note

from nightmill.domain.shards import MAX_SHARDS, ShardRange, cut, shard_count
from nightmill.jobs.tokens import TokenCounter

CUAD = Path("shared", "data", "cuad", "contracts.jsonl.gz")


def least_maximum(weights: Sequence[int], count: int) -> int:
    """The heaviest range of the best contiguous cut into at most `count`, by dynamic programming."""
    sums = [0, *accumulate(weights)]
    best = list(sums)  # one range over the first n
    for _ in range(count - 1):
        best = [0] + [
            min(max(best[start], sums[end] - sums[start]) for start in range(end)) for end in range(1, len(sums))
        ]
    return best[-1]


def covers(ranges: Sequence[ShardRange], weights: Sequence[int]) -> bool:
    """Whether the ranges hold every position once, in order, none of them empty, with their true weights."""
    positions = [position for part in ranges for position in range(part.first, part.last + 1)]
    return (
        positions == list(range(len(weights)))
        and all(part.first <= part.last for part in ranges)
        and all(part.weight == sum(weights[part.first : part.last + 1]) for part in ranges)
    )


@settings(deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=300), st.integers(1, 40))
def test_every_item_stands_in_exactly_one_range(weights: list[int], count: int) -> None:
    ranges = cut(weights, count)
    assert covers(ranges, weights)
    assert len(ranges) == min(count, len(weights))


@settings(deadline=None)
@given(st.lists(st.integers(1, 50) | st.integers(1, 10_000), min_size=1, max_size=40), st.integers(1, 12))
def test_the_heaviest_range_is_as_light_as_any_contiguous_cut_allows(weights: list[int], count: int) -> None:
    assert max(part.weight for part in cut(weights, count)) == least_maximum(weights, min(count, len(weights)))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(900, 1_100), min_size=200, max_size=400), st.integers(2, 8))
def test_many_items_of_similar_weight_make_balanced_shards(weights: list[int], count: int) -> None:
    mean = sum(weights) / count
    loads = [part.weight for part in cut(weights, count)]
    assert max(loads) <= mean + 1_100
    assert min(loads) >= mean - count * 1_100


def test_the_last_range_is_no_small_remainder() -> None:
    assert {part.weight for part in cut([1] * 100, 8)} == {12, 13}


def test_a_giant_gets_a_range_to_itself() -> None:
    ranges = cut([10, 10, 5_000, 10, 10], 3)
    assert ShardRange(2, 2, 5_000) in ranges


def test_nothing_makes_no_shards_and_cutting_a_million_is_quick() -> None:
    assert cut([], 16) == []
    assert len(cut(range(1, 1_000_001), 256)) == 256


@given(st.integers(0, 10**7), st.integers(0, 10**12), st.none() | st.integers(1, 256))
def test_the_number_of_shards_is_bounded_by_items_and_by_the_scheduler(
    items: int, tokens: int, wanted: int | None
) -> None:
    count = shard_count(items, tokens, wanted)
    assert count <= min(items, MAX_SHARDS)
    assert (count == 0) == (items == 0)
    if wanted and wanted <= items:
        assert count == wanted


def test_without_a_wish_there_is_one_shard_per_target() -> None:
    assert shard_count(100_000, 20_000_001, None, 2_000_000) == 11
    assert shard_count(100_000, 1, None) == 1
    assert shard_count(5, 10**9, None) == 5


@cache
def contracts() -> tuple[str, ...]:
    """Texts of 120 real contracts; they lie beside the repository, not in it."""
    for parent in Path(__file__).resolve().parents:
        if (parent / CUAD).is_file():
            with gzip.open(parent / CUAD, "rt", encoding="utf-8") as lines:
                return tuple(str(json.loads(line)["text"]) for line in lines)
    pytest.skip(f"the contracts ({CUAD} beside the repository) are absent")


def tokens_of(texts: Sequence[str]) -> list[int]:
    counter = TokenCounter("gpt-4.1-mini")
    return [counter.count_messages([{"role": "user", "content": text}]) for text in texts]


def test_paragraphs_of_real_contracts_are_balanced_to_a_twentieth() -> None:
    paragraphs = [part for text in contracts() for part in re.split(r"\n\s*\n", text) if part.strip()]
    weights = tokens_of(paragraphs)
    loads = [part.weight for part in cut(weights, 16)]
    mean = sum(weights) / 16
    note(f"{len(weights)} paragraphs, {sum(weights)} tokens: heaviest of 16 shards {max(loads) / mean:.4f} x the mean")
    assert max(weights) <= 0.05 * mean, "the claim holds where no single item exceeds 5% of the mean"
    assert max(loads) <= 1.05 * mean


def test_whole_contracts_are_cut_as_well_as_their_order_allows() -> None:
    weights = tokens_of(contracts())
    heaviest = max(part.weight for part in cut(weights, 16))
    best = least_maximum(weights, 16)
    note(f"{len(weights)} contracts: heaviest of 16 shards {heaviest / best:.4f} x the best contiguous cut")
    assert heaviest <= 1.02 * best
