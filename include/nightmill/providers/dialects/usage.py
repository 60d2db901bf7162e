"""Usage as vendors and nearly compatible servers write it: which tokens were counted, and what cannot be.

Numbers that contradict one another (more tokens from the cache than in the prompt, more reasoning than output, a total
that is no sum of its parts) or that no request can have are not believed at all: a price made of them can be anything,
even negative. They are kept as they were told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nightmill.providers.answers import NO_USAGE, Usage
from nightmill.providers.cleaning import storable, whole

MOST_OF_A_REQUEST = 100_000_000  # tokens: ten times the largest context window that any model has
_MOST_KEPT, _MOST_CHARACTERS = 50, 40  # values, and characters of each: it is kept once per request

# Where each count may stand, by precedence. Chat completions; Responses and Anthropic; DeepSeek, Moonshot, OpenRouter.
_PLACES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "prompt": (("prompt_tokens",), ("input_tokens",)),
    "completion": (("completion_tokens",), ("output_tokens",)),
    "total": (("total_tokens",),),
    "cached": (
        ("prompt_tokens_details", "cached_tokens"),
        ("input_tokens_details", "cached_tokens"),
        ("cache_read_input_tokens",),
        ("prompt_cache_hit_tokens",),
        ("cached_tokens",),
    ),
    "cache_write": (
        ("prompt_tokens_details", "cache_write_tokens"),
        ("prompt_tokens_details", "cache_creation_tokens"),
        ("input_tokens_details", "cache_write_tokens"),
        ("cache_creation_input_tokens",),
    ),
    "reasoning": (
        ("completion_tokens_details", "reasoning_tokens"),
        ("output_tokens_details", "reasoning_tokens"),
        ("output_tokens_details", "thinking_tokens"),
        ("reasoning_tokens",),
    ),
}


def read_usage(usage: object, *, answered: bool = False, wrote: bool = False) -> Usage:
    """What a usage object says. What is missing or not a number is None, never 0; of what cannot be, every count is
    None and `odd` holds what was told. `answered`: it stands beside an answer, so that there was a prompt; `wrote`:
    beside text that a model wrote, so that there was a completion."""
    if not isinstance(usage, dict):
        return NO_USAGE
    told = {name: _told(usage, places) for name, places in _PLACES.items()}
    if any(value is not None and not _can_be(value) for value in told.values()):
        return _odd(usage)
    read = {name: whole(value) for name, value in told.items()}
    stated = prompt = read["prompt"]
    completion, reasoning, total = read["completion"], read["reasoning"], read["total"]
    cached, written = read["cached"], read["cache_write"]
    if prompt is not None and _counts_cache_apart(usage):
        prompt += (cached or 0) + (written or 0)
    sums = {(prompt or 0) + (completion or 0), (stated or 0) + (completion or 0)}
    if completion is not None and reasoning and total in {one + reasoning for one in sums} - sums:
        completion += reasoning  # the total says that the completion was counted without it (xAI)
        sums = {one + reasoning for one in sums}
    of_cache = (cached or 0) + (written or 0)
    complete = prompt is not None and completion is not None
    if (
        (complete and total and total not in sums)
        or (prompt is not None and of_cache > prompt)
        or (completion is not None and (reasoning or 0) > completion)
        or (answered and prompt == 0)
        or (wrote and completion == 0)
    ):
        return _odd(usage)
    if completion is None:
        reasoning = None
    if prompt is None:  # parts of nobody knows what
        return Usage(None, completion, None, None, reasoning)
    return Usage(prompt - of_cache, completion, cached, written, reasoning)


def _told(usage: Mapping[str, Any], places: tuple[tuple[str, ...], ...]) -> int | float | None:
    for *outer, name in places:
        holder: Any = usage
        for key in outer:
            holder = holder.get(key)
            if not isinstance(holder, dict):
                break
        else:
            value = holder.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return value
    return None


def _can_be(value: int | float) -> bool:
    count = whole(value)
    return count is not None and count <= MOST_OF_A_REQUEST


def _counts_cache_apart(usage: Mapping[str, Any]) -> bool:
    """Anthropic's way: `input_tokens` are those that neither came from the cache nor went into it."""
    return "prompt_tokens" not in usage and bool(
        {"cache_read_input_tokens", "cache_creation_input_tokens"} & usage.keys()
    )


def _odd(usage: dict[str, Any]) -> Usage:
    return Usage(odd=storable(usage, _MOST_KEPT, _MOST_CHARACTERS))
