"""Bodies of Anthropic's Messages API: as it documents them, and as loosely as an answer can be read."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from nightmill.providers.dialects.openai_bodies import Body


class MessageBody(Body):
    """Whatever stands where a message is expected, an error object too."""

    content: Any = None
    stop_reason: Any = None


class DocumentedText(msgspec.Struct, gc=False, tag_field="type", tag="text"):
    text: str


class DocumentedThinking(msgspec.Struct, gc=False, tag_field="type", tag="thinking"):
    """What the model thought is not the answer."""


class OutputDetails(msgspec.Struct, gc=False):
    thinking_tokens: int | None = None


class DocumentedUsage(msgspec.Struct, gc=False):
    """`input_tokens` are those that neither came from the cache nor went into it."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None


class DocumentedMessage(msgspec.Struct, gc=False):
    """Nearly every answer: text, thinking and nothing else, ended by the model."""

    type: Literal["message"]
    content: list[DocumentedText | DocumentedThinking]
    stop_reason: Literal["end_turn", "stop_sequence"]
    model: str
    usage: DocumentedUsage
    error: None = None
