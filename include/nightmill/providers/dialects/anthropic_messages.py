"""Anthropic's Messages API, whatever transport carries it.

No answer can stop the ones after it: whatever is wrong with it becomes a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nightmill.domain.endings import Ending
from nightmill.domain.errors import ConfigError
from nightmill.domain.failures import Instead
from nightmill.providers.answers import Answer, Failed, Reply, Unreadable, Usage
from nightmill.providers.cleaning import MOST_MODEL, word
from nightmill.providers.connection import RequestSpec
from nightmill.providers.dialects.anthropic_bodies import (
    DocumentedMessage,
    DocumentedText,
    DocumentedUsage,
    MessageBody,
)
from nightmill.providers.dialects.anthropic_schema import fitted
from nightmill.providers.dialects.careful_replies import read_carefully
from nightmill.providers.dialects.json_bodies import json_text, static_json
from nightmill.providers.dialects.usage import MOST_OF_A_REQUEST, read_usage
from nightmill.providers.endings import ending

BETAS = "betas"  # names of beta headers: they belong to the call and not to a request
_RESERVED = frozenset({"model", "messages", "system", "stream"})
_SAMPLING = frozenset({"temperature", "top_p", "top_k"})  # not in the API's types any more; newer models answer 400
_UNPAID = Usage(uncached=0, output=0)  # "Only succeeded requests are billed" (docs, "Batch processing")

_read_documented = msgspec.json.Decoder(DocumentedMessage).decode
_THINKING, _TOOLS = frozenset({"thinking", "redacted_thinking"}), frozenset({"tool_use", "server_tool_use"})


class AnthropicMessages:
    """The dialect of /v1/messages.

    Raises ConfigError for parameters that a request cannot carry, and where nothing limits the answer's tokens: the API
    demands a limit.
    """

    def __init__(self, spec: RequestSpec) -> None:
        schema = None if spec.response_schema is None else fitted(spec.response_schema)
        self.takes_schema = spec.response_schema is None or schema is not None
        self._parameters = _parameters(spec, schema)
        self._limit = spec.max_output_tokens or self._parameters.pop("max_tokens", None)
        self._starts: dict[int, bytes] = {}  # of a body, by the limit to the answer's tokens
        if type(self._limit) is not int or self._limit < 1:
            raise ConfigError(
                "Anthropic demands a limit to each answer's tokens, and the job sets none.",
                "Write provider.max_output_tokens into job.yaml.",
            )

    def encode(self, messages: Sequence[Mapping[str, str]], max_output: int | None = None) -> bytes:
        """One request body. System messages go where the API wants them, in one text."""
        limit = max_output or self._limit
        if limit not in self._starts:
            self._starts[limit] = static_json({**self._parameters, "max_tokens": limit})[:-1] + b',"messages":'
        system = [one["content"] for one in messages if one["role"] == "system"]
        others = [one for one in messages if one["role"] != "system"]
        if not others:  # at least one message is required
            others, system = [{"role": "user", "content": text} for text in system], []
        parts = [self._starts[limit], json_text(others)]
        if system:
            parts += [b',"system":', json_text("\n\n".join(system))]
        return b"".join((*parts, b"}"))

    def read(self, reply: Reply) -> Answer | Failed | Unreadable:
        """What one reply says."""
        documented = _documented(reply) if reply.status == 200 and not reply.errors else None
        if documented is not None:
            return documented
        said = read_carefully(reply, MessageBody, _answer_in)
        if isinstance(said, Failed) and reply.status == 0:
            return msgspec.structs.replace(said, usage=_UNPAID)
        return said


def _parameters(spec: RequestSpec, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """The body's members that all requests share."""
    clash = sorted((_RESERVED | _SAMPLING) & set(spec.parameters))
    if clash:
        raise ConfigError(
            f"The request parameters set {', '.join(clash)}: Anthropic's models take no sampling parameters, and "
            "nightmill writes the rest itself.",
            "Take them out of the job's provider.parameters.",
        )
    body: dict[str, Any] = {"model": spec.model, **{key: one for key, one in spec.parameters.items() if key != BETAS}}
    if schema is not None:
        asked = {"type": "json_schema", "schema": schema}
        body["output_config"] = {**body.get("output_config", {}), "format": asked}
    return body


def _documented(reply: Reply) -> Answer | None:
    try:
        body = _read_documented(reply.body)
    except (ValueError, RecursionError):
        return None
    text = "".join([block.text for block in body.content if isinstance(block, DocumentedText)])
    usage = _documented_usage(body.usage)
    if not text or usage is None or len(body.model) > MOST_MODEL or not body.model.isprintable() or not body.model:
        return None
    return Answer(text, False, Ending.FINISHED, body.stop_reason, body.model, usage, reply.sanitised)


def _documented_usage(used: DocumentedUsage) -> Usage | None:
    """Counts that can be; None for all others, which are read with more care."""
    uncached, output = used.input_tokens, used.output_tokens
    read, written = used.cache_read_input_tokens, used.cache_creation_input_tokens
    reasoning = used.output_tokens_details.thinking_tokens if used.output_tokens_details else None
    least = min(uncached, read or 0, written or 0, reasoning or 0)
    prompt = uncached + (read or 0) + (written or 0)
    fits = least >= 0 and 0 < prompt <= MOST_OF_A_REQUEST and 0 < output <= MOST_OF_A_REQUEST
    if not fits or (reasoning or 0) > output:
        return None
    return Usage(uncached, output, read, written, reasoning)


def _answer_in(body: MessageBody, sanitised: bool) -> Answer | None:
    """The message's text blocks, joined; what stands between them (thinking, calls of tools) is not the answer."""
    if not isinstance(body.content, list):
        return None
    blocks = [one for one in body.content if isinstance(one, dict)]
    texts = [one["text"] for one in blocks if one.get("type") == "text" and isinstance(one.get("text"), str)]
    finish_reason = word(body.stop_reason)
    ended = ending(finish_reason)
    refusal = ended is Ending.REFUSED
    text = None if refusal else "".join(texts) or None
    usage = read_usage(body.usage, answered=True, wrote=text is not None)
    instead: Instead = "" if refusal or text is not None else _instead({str(one.get("type")) for one in blocks})
    return Answer(text, refusal, ended, finish_reason, word(body.model, MOST_MODEL), usage, sanitised, instead)


def _instead(kinds: set[str]) -> Instead:
    """What a message without text holds: a call of a tool, or thinking without an answer after it."""
    if kinds & _TOOLS:
        return "tool_calls"
    return "reasoning" if kinds & _THINKING else ""
