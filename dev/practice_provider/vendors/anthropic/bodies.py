"""Executing a Messages request: its answer as a Message of content blocks, with usage."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal

import orjson

from dev.practice_provider.inference import Inference, Said
from dev.practice_provider.models.port import Usage
from dev.practice_provider.refusal import Refusal
from dev.practice_provider.vendor import Answered, Completed
from dev.practice_provider.vendors.anthropic.params import check
from dev.practice_provider.vendors.anthropic.question import Params, cached_text_tokens, forced_tool

MESSAGES = "/v1/messages"
LEAST_CACHED_TOKENS = 1024  # a shorter prefix is not cached
CACHE_HITS = 0.7  # of the requests that are marked for the cache; hits are best effort
THOUGHT = "Let me read this carefully before I answer."
_STOPS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
Tier = Literal["batch", "standard"]
Block = dict[str, Any]


def run(
    inference: Inference, params: Params, asked: Mapping[str, Any], answer_id: str, tier: Tier, most_output: int
) -> Answered:
    """`asked` is the question of `params`. `answer_id` is unique to this answer."""
    refusal = check(params, inference.knows_chat, most_output)
    if refusal is not None:
        return refusal
    said = inference.chat(asked)
    if isinstance(said, Refusal):
        return said
    return _completed(inference, params, said, answer_id, tier)


def _completed(inference: Inference, params: Params, said: Said, answer_id: str, tier: Tier) -> Completed:
    content, stop_reason, stop_sequence = _content(params, said, answer_id)
    thinking = _thinking(params)
    thought = sum(inference.count(one["thinking"]) for one in thinking)
    usage = Usage(said.usage.prompt_tokens, said.usage.completion_tokens + thought)
    refusal = said.answer.refusal
    body = {
        "id": f"msg_{answer_id}",
        "type": "message",
        "role": "assistant",
        "model": params["model"],
        "content": thinking + content,
        "stop_reason": stop_reason,
        "stop_sequence": stop_sequence,
        "stop_details": refusal_details(refusal) if stop_reason == "refusal" else None,
        "usage": _usage(inference, params, usage, thought, answer_id, tier),
    }
    return Completed(body, usage)


def refusal_details(explanation: str | None) -> dict[str, Any]:
    return {"type": "refusal", "category": "general_harms", "explanation": explanation}


def _content(params: Params, said: Said, answer_id: str) -> tuple[list[Block], str, str | None]:
    """The blocks of the answer, why it ends, and the stop sequence that ended it."""
    answer = said.answer
    if answer.refusal is not None:
        return [], "refusal", None
    text, reason = answer.text or "", _STOPS.get(answer.finish_reason, "end_turn")
    tool = forced_tool(params)
    if tool is not None:
        whole = reason == "end_turn"
        given = _arguments(text) if whole else {}
        block = {"type": "tool_use", "id": f"toolu_{answer_id}", "name": tool["name"], "input": given}
        return [block], "tool_use" if whole else reason, None
    for stop in params.get("stop_sequences") or ():
        before, found, _ = text.partition(stop)
        if found:
            return text_blocks(before), "stop_sequence", stop
    return text_blocks(text), reason, None


def _arguments(text: str) -> dict[str, Any]:
    """Models of this simulator write JSON where a schema is asked for; those that do not are taken at their word."""
    try:
        given = orjson.loads(text)
    except orjson.JSONDecodeError:
        given = None
    return given if isinstance(given, dict) else {"answer": text}


def text_blocks(*texts: str) -> list[Block]:
    """One block for each text that is not empty."""
    return [{"type": "text", "text": text, "citations": None} for text in texts if text]


def thinking_block(text: str) -> Block:
    return {"type": "thinking", "thinking": text, "signature": hashlib.sha256(text.encode()).hexdigest()}


def _thinking(params: Params) -> list[Block]:
    given = params.get("thinking") or {}
    if given.get("type") not in ("enabled", "adaptive"):
        return []
    block = thinking_block(THOUGHT)
    return [{**block, "thinking": ""} if given.get("display") == "omitted" else block]


def _usage(
    inference: Inference, params: Params, usage: Usage, thought: int, answer_id: str, tier: Tier
) -> dict[str, Any]:
    """`input_tokens` leaves out what was written into the cache or read from it."""
    cached, hour = cached_text_tokens(params, inference.count)
    cached = min(cached, usage.prompt_tokens) if cached >= LEAST_CACHED_TOKENS else 0
    read = cached if _draw(answer_id) < CACHE_HITS else 0
    return {
        "input_tokens": usage.prompt_tokens - cached,
        "output_tokens": usage.completion_tokens,
        **cache_usage(cached - read, read, hour=hour),
        "output_tokens_details": {"thinking_tokens": thought},
        "server_tool_use": None,
        "service_tier": tier,
        "inference_geo": "not_available",
    }


def cache_usage(written: int, read: int, *, hour: bool = False) -> dict[str, Any]:
    kept = {"ephemeral_5m_input_tokens": 0 if hour else written, "ephemeral_1h_input_tokens": written if hour else 0}
    return {"cache_creation_input_tokens": written, "cache_read_input_tokens": read, "cache_creation": kept}


def _draw(subject: str) -> float:
    return int.from_bytes(hashlib.sha256(subject.encode()).digest()[:8], "big") / 2**64
