"""Bodies of chat completions: as loosely as servers write them, and as the API documents them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Message(msgspec.Struct):
    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None
    function_call: Any = None


class Choice(msgspec.Struct):
    message: Message | None = None
    finish_reason: Any = None
    index: Any = None


class Body(msgspec.Struct):
    choices: list[Choice] | None = None
    data: Any = None
    model: Any = None
    usage: Any = None
    error: Any = None
    errors: Any = None
    detail: Any = None
    message: Any = None
    code: Any = None
    type: Any = None


class DocumentedMessage(msgspec.Struct, gc=False):
    content: str
    refusal: None = None


class DocumentedChoice(msgspec.Struct, gc=False):
    message: DocumentedMessage
    finish_reason: str
    index: Literal[0] = 0


class PromptDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: None = None
    cache_creation_tokens: None = None


class CompletionDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class DocumentedUsage(msgspec.Struct, gc=False):
    """Usage as OpenAI writes it. Counts that others write beside it are typed as None, so that a line which has them is
    read with more care."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None
    cache_read_input_tokens: None = None
    cache_creation_input_tokens: None = None
    prompt_cache_hit_tokens: None = None
    cached_tokens: None = None
    reasoning_tokens: None = None


class DocumentedBody(msgspec.Struct, gc=False):
    choices: list[DocumentedChoice]
    model: str
    usage: DocumentedUsage
    error: None = None
