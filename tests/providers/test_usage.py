"""Usage as servers write it: what is taken of it, under which name, and what cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from providers.openai_talk import said_in, used

from nightmill.providers.answers import Answer, Usage
from nightmill.providers.dialects.usage import read_usage

DETAILS = {"cached_tokens": 100, "cache_write_tokens": 20}
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "reasoning_tokens")


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (
            {"prompt_tokens": 476, "completion_tokens": 40, "total_tokens": 516, "prompt_tokens_details": DETAILS,
             "completion_tokens_details": {"reasoning_tokens": 30}},
            used(476, 40, 100, 20, 30),
        ),
        (
            {"input_tokens": 476, "output_tokens": 40, "input_tokens_details": {"cached_tokens": 100},
             "output_tokens_details": {"reasoning_tokens": 30}, "total_tokens": 516},
            used(476, 40, 100, None, 30),
        ),
        (
            {"input_tokens": 356, "output_tokens": 40, "cache_read_input_tokens": 100,
             "cache_creation_input_tokens": 20},
            used(476, 40, 100, 20),
        ),
        (
            {"prompt_tokens": 476, "completion_tokens": 40, "cache_read_input_tokens": 100,
             "cache_creation_input_tokens": 20},
            used(476, 40, 100, 20),
        ),
        (
            {"prompt_tokens": 476, "completion_tokens": 40, "prompt_cache_hit_tokens": 100,
             "prompt_cache_miss_tokens": 376},
            used(476, 40, 100),
        ),
        ({"prompt_tokens": 476, "completion_tokens": 40, "cached_tokens": 100}, used(476, 40, 100)),
        (
            {"prompt_tokens": 476, "completion_tokens": 40, "total_tokens": 546,
             "completion_tokens_details": {"reasoning_tokens": 30}},
            used(476, 70, None, None, 30),
        ),
        ({"prompt_tokens": 476, "completion_tokens": 40, "total_tokens": 0}, used(476, 40)),
        ({"prompt_tokens_details": {"cached_tokens": 100}, "completion_tokens": 40}, used(None, 40)),
        ({"prompt_tokens": 476, "completion_tokens_details": {"reasoning_tokens": 30}}, used(476, None)),
    ],
    ids=["OpenAI, OpenRouter", "Responses", "Anthropic", "LiteLLM", "DeepSeek", "Moonshot", "xAI", "no total",
         "cache of no prompt", "reasoning of no answer"],
)  # fmt: skip
def test_cache_reads_cache_writes_and_reasoning_tokens_are_read_under_each_vendors_names(
    usage: dict[str, Any], read: Usage
) -> None:
    assert read_usage(usage, answered=True) == read


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 476, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": 1024}},
        {"prompt_tokens": 476, "completion_tokens": 12, "cache_read_input_tokens": 1024},
        {"prompt_tokens": 476, "completion_tokens": 12,
         "prompt_tokens_details": {"cached_tokens": 300, "cache_write_tokens": 300}},
        {"prompt_tokens": 476, "completion_tokens": 12, "completion_tokens_details": {"reasoning_tokens": 400}},
        {"prompt_tokens": 476, "completion_tokens": 12, "total_tokens": 12},
        {"prompt_tokens": 476, "completion_tokens": 12, "total_tokens": 99_999},
        {"prompt_tokens": -476, "completion_tokens": 12},
        {"prompt_tokens": 476, "completion_tokens": -12},
        {"prompt_tokens": 476, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": -1}},
        {"prompt_tokens": 476.5, "completion_tokens": 12},
        {"prompt_tokens": 476, "completion_tokens": 2_000_000_000},
        {"prompt_tokens": 0, "completion_tokens": 12},
        {"prompt_tokens": 476, "completion_tokens": 0, "total_tokens": 476},
        {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
    ],
    ids=str,
)  # fmt: skip
def test_usage_that_cannot_be_is_kept_as_it_was_told_and_no_count_of_it_is_taken(usage: dict[str, Any]) -> None:
    body = {"model": "m", "choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}], "usage": usage}
    line = {"custom_id": "r-1", "response": {"status_code": 200, "body": body}, "error": None}
    answer = said_in(json.dumps(line).encode())
    assert isinstance(answer, Answer)
    assert answer.text == "{}"
    odd = answer.usage.odd
    assert answer.usage == Usage(odd=odd)
    assert odd is not None
    assert odd.keys() == usage.keys()


def test_what_is_kept_of_odd_usage_is_short() -> None:
    odd = read_usage({"prompt_tokens": -1, **{f"x{n}": "y" * 1_000 for n in range(1_000)}}).odd
    assert len(json.dumps(odd)) < 3_000


def test_an_error_line_may_say_that_no_token_was_used() -> None:
    assert read_usage({"prompt_tokens": 0, "completion_tokens": 0}) == used(0, 0)


@given(st.fixed_dictionaries({}, optional={name: st.integers(-5, 50) | st.floats() | st.none() for name in COUNTS}))
def test_whatever_a_server_counts_what_is_taken_adds_up(usage: dict[str, Any]) -> None:
    read = read_usage(usage)
    counts = (read.uncached, read.cache_read, read.cache_write, read.output, read.reasoning)
    assert min(one or 0 for one in counts) >= 0
    assert (read.reasoning or 0) <= (read.output or 0)
    assert read.prompt is not None or (read.cache_read, read.cache_write) == (None, None)
