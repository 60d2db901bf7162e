"""The lines of an executed request whose answer comes back oddly."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from dev.practice_provider.odd_answers import TEXT_KINDS, Odd, odd_bytes, odd_text
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.vendors.anthropic.bodies import (
    THOUGHT,
    Block,
    cache_usage,
    refusal_details,
    text_blocks,
    thinking_block,
)
from dev.practice_provider.vendors.anthropic.result_lines import errored_line, result_line, succeeded_line

Message = dict[str, Any]

ODD_KINDS = frozenset(Odd) - {
    Odd.STATUS_IN_WORDS,
    Odd.STRING_BODY,
    Odd.STATUS_ZERO,
    Odd.CHOICES_SHUFFLED,
    Odd.FINISH_ERROR,
    Odd.FILTERED,
}
_STOPS: dict[Odd, dict[str, Any]] = {
    Odd.TRUNCATED: {"stop_reason": "max_tokens"},
    Odd.MAX_TOKENS: {"stop_reason": "max_tokens"},
    Odd.MODEL_LENGTH: {"stop_reason": "model_context_window_exceeded"},
    Odd.PAUSED: {"stop_reason": "pause_turn"},
    Odd.OTHER_FINISH: {"stop_reason": "stop_sequence", "stop_sequence": "\n\nEND"},
    Odd.UNKNOWN_FINISH: {"stop_reason": "hit_the_wall"},
    Odd.TOOL_CALL: {"stop_reason": "tool_use"},
    Odd.REFUSAL: {"stop_reason": "refusal", "stop_details": refusal_details("I cannot help with that.")},
}


def odd_lines(odd: Odd, custom_id: str, message: Message, request_id: str) -> list[bytes]:
    """The request's pieces of the results."""
    if odd not in (Odd.CONFLICTING, Odd.THREE_ANSWERS):
        message = _with_odd_content(odd, message)
    line = succeeded_line(custom_id, message)
    errored = errored_line(custom_id, Refusal(500, "The request failed."), request_id)
    match odd:
        case Odd.LOST:
            return []
        case Odd.DOUBLED:
            return [line, line]
        case Odd.CONFLICTING:
            return [line, succeeded_line(custom_id, _with_odd_content(odd, message))]
        case Odd.THREE_ANSWERS:
            second = _with_odd_content(odd, message)
            third = _with_odd_content(odd, second)
            return [line, *(succeeded_line(custom_id, one) for one in (second, third))]
        case Odd.FOREIGN:
            return [succeeded_line(f"foreign-{custom_id}", message), line]
        case Odd.BOTH_FILES:
            return [line, errored]
        case Odd.SWAPPED_FILES:
            return [errored, line]
        case Odd.UNKNOWN_RESULT:
            return [result_line(custom_id, {"type": "suspended", "message": message})]
        case _:
            return _with_odd_body(odd, custom_id, message, line)


def _with_odd_body(odd: Odd, custom_id: str, message: Message, line: bytes) -> list[bytes]:
    usage = message["usage"]
    match odd:
        case Odd.OTHER_USAGE:
            return [line, succeeded_line(custom_id, {**message, "usage": {**usage, "input_tokens": 1}})]
        case Odd.ERROR_OF_NULLS:
            nothing = {"type": "error", "error": {"type": None, "message": None}}
            return [succeeded_line(custom_id, message, error=nothing)]
        case Odd.ERROR_IN_BODY:
            error = {"type": "overloaded_error", "message": "Overloaded"}
            return [succeeded_line(custom_id, {"type": "error", "error": error})]
        case Odd.NO_ANSWER:
            return [succeeded_line(custom_id, {"messages": [{"role": "user", "content": "x"}]})]
        case Odd.NO_USAGE:
            return [succeeded_line(custom_id, {**message, "usage": None})]
        case Odd.IMPOSSIBLE_USAGE:
            more = {"output_tokens_details": {"thinking_tokens": usage["output_tokens"] + 1_024}}
            return [succeeded_line(custom_id, {**message, "usage": {**usage, **more}})]
        case Odd.CACHED_USAGE:
            return [succeeded_line(custom_id, {**message, "usage": _cached_usage(usage)})]
        case _:
            return odd_bytes(odd, line)


def _with_odd_content(odd: Odd, message: Message) -> Message:
    changed = deepcopy(message)
    content: list[Block] = changed["content"]
    texts = [one for one in content if one["type"] == "text"]
    if odd in TEXT_KINDS and texts:
        texts[0]["text"] = odd_text(odd, texts[0]["text"])
    text = texts[0]["text"] if texts else ""
    changed |= _STOPS.get(odd, {})
    match odd:
        case Odd.REASONING_PARTS:
            content.insert(0, thinking_block(THOUGHT))
        case Odd.REASONING_ONLY:
            changed["content"] = [thinking_block(text)]
        case Odd.SPLIT_TEXT:
            third = len(text) // 3
            changed["content"] = text_blocks(text[:third], text[third : 2 * third], text[2 * third :])
        case Odd.UNKNOWN_BLOCK:
            content.insert(0, {"type": "hologram", "data": "what is new"})
        case Odd.TOOL_CALL:
            changed["content"] = [{"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {}}]
        case Odd.EMPTY | Odd.REFUSAL:
            changed["content"] = []
        case _:
            pass
    return changed


def _cached_usage(usage: dict[str, Any]) -> dict[str, Any]:
    prompt, output = usage["input_tokens"], usage["output_tokens"]
    read, written = prompt // 2, prompt // 4
    return {
        **usage,
        "input_tokens": prompt - read - written,
        **cache_usage(written, read),
        "output_tokens_details": {"thinking_tokens": output // 2},
    }
