"""The lines of an executed request whose answer comes back oddly."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from dev.practice_provider.odd_answers import TEXT_KINDS, Odd, odd_bytes, odd_text
from dev.practice_provider.vendors.openai.result_lines import response_line, unanswered_line

ODD_KINDS = frozenset(Odd) - {Odd.SPLIT_TEXT, Odd.UNKNOWN_BLOCK, Odd.UNKNOWN_RESULT, Odd.PAUSED}


def odd_lines(odd: Odd, request_id: str, custom_id: str, body: dict[str, Any]) -> tuple[list[bytes], list[bytes]]:
    """The line's pieces of the output file and of the error file. The text of a body without choices stays."""
    if odd not in (Odd.CONFLICTING, Odd.THREE_ANSWERS):
        body = _with_odd_message(odd, body)
    line = response_line(request_id, custom_id, 200, body)
    replaced = _odd_body(odd, body)
    if replaced is not None:
        return [response_line(request_id, custom_id, 200, replaced)], []
    match odd:
        case Odd.LOST:
            return [], []
        case Odd.DOUBLED:
            return [line, line], []
        case Odd.CONFLICTING:
            return [line, response_line(request_id, custom_id, 200, _with_odd_message(odd, body))], []
        case Odd.THREE_ANSWERS:
            second = _with_odd_message(odd, body)
            third = _with_odd_message(odd, second)
            return [line, *(response_line(request_id, custom_id, 200, one) for one in (second, third))], []
        case Odd.OTHER_USAGE:
            usage = {**body["usage"], "prompt_tokens": 1, "total_tokens": None}
            return [line, response_line(request_id, custom_id, 200, {**body, "usage": usage})], []
        case Odd.FOREIGN:
            return [response_line(request_id, f"foreign-{custom_id}", 200, body), line], []
        case Odd.BOTH_FILES:
            return [line], [unanswered_line(request_id, custom_id, "server_error", "The request failed.")]
        case Odd.SWAPPED_FILES:
            return [unanswered_line(request_id, custom_id, "server_error", "The request failed.")], [line]
        case Odd.ERROR_OF_NULLS:
            return [line.replace(b'"error":null}\n', b'"error":{"code":null,"message":null}}\n')], []
        case Odd.STATUS_IN_WORDS:
            return [line.replace(b'"status_code":200', b'"status_code":"200 OK"')], []
        case Odd.STATUS_ZERO:
            return [], [response_line("", custom_id, 0, {})]
        case _:
            return odd_bytes(odd, line), []


def _odd_body(odd: Odd, body: dict[str, Any]) -> dict[str, Any] | str | None:
    """What stands in place of the body of a line that is sound in all else; None where the body stays."""
    match odd:
        case Odd.STRING_BODY:
            return json.dumps(body)
        case Odd.ERROR_IN_BODY:
            return {"error": {"message": "The engine is overloaded.", "type": "server_error", "code": None}}
        case Odd.NO_ANSWER:
            return {"messages": [{"role": "user", "content": "x"}]}
        case Odd.NO_USAGE:
            return {**body, "usage": None}
        case Odd.IMPOSSIBLE_USAGE | Odd.CACHED_USAGE:
            return {**body, "usage": _cached_usage(body["usage"], impossible=odd is Odd.IMPOSSIBLE_USAGE)}
        case _:
            return None


def _with_odd_message(odd: Odd, body: dict[str, Any]) -> dict[str, Any]:
    if not body.get("choices"):
        return body
    changed = deepcopy(body)
    choice = changed["choices"][0]
    if odd in TEXT_KINDS:
        choice["message"]["content"] = odd_text(odd, choice["message"]["content"] or "")
    message, finish_reason = _MESSAGES.get(odd, ({}, choice["finish_reason"]))
    choice["message"] |= message
    choice["finish_reason"] = finish_reason
    text = choice["message"]["content"]
    if odd is Odd.REASONING_ONLY:
        choice["message"] |= {"content": None, "reasoning_content": text}
    elif odd is Odd.REASONING_PARTS:
        parts = [{"type": "reasoning", "text": "Let me think."}, {"type": "text", "text": text}]
        choice["message"]["content"] = parts
    elif odd is Odd.CHOICES_SHUFFLED:
        other = deepcopy(choice) | {"index": 1}
        other["message"]["content"] = "Another choice."
        changed["choices"] = [other, choice]
    return changed


def _cached_usage(usage: dict[str, Any], *, impossible: bool) -> dict[str, Any]:
    prompt, completion = usage["prompt_tokens"], usage.get("completion_tokens", 0)
    if impossible:
        return {**usage, "prompt_tokens_details": {"cached_tokens": prompt + 1_024}}
    return {
        **usage,
        "prompt_tokens_details": {"cached_tokens": prompt // 2, "cache_write_tokens": prompt // 4},
        "completion_tokens_details": {"reasoning_tokens": completion // 2},
    }


_MESSAGES: dict[Odd, tuple[dict[str, Any], str]] = {
    Odd.TRUNCATED: ({}, "length"),
    Odd.MODEL_LENGTH: ({}, "model_length"),
    Odd.MAX_TOKENS: ({}, "MAX_TOKENS"),
    Odd.FINISH_ERROR: ({}, "error"),
    Odd.OTHER_FINISH: ({}, "eos_token"),
    Odd.UNKNOWN_FINISH: ({}, "hit_the_wall"),
    Odd.TOOL_CALL: (
        {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "look_up"}}]},
        "tool_calls",
    ),
    Odd.REFUSAL: ({"content": None, "refusal": "I cannot help with that."}, "stop"),
    Odd.FILTERED: ({"content": ""}, "content_filter"),
}
