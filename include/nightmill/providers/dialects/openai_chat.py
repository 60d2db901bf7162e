"""OpenAI's chat completions, and what nearly compatible servers make of them.

No answer can stop the ones after it: whatever is wrong with it becomes a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from nightmill.domain.endings import Ending
from nightmill.domain.failures import Instead
from nightmill.providers.answers import Answer, Failed, Reply, Unreadable, Usage
from nightmill.providers.cleaning import MOST_MODEL, word
from nightmill.providers.connection import RequestSpec
from nightmill.providers.dialects.careful_replies import read_carefully
from nightmill.providers.dialects.openai_bodies import Body, Choice, DocumentedBody, DocumentedUsage, Message
from nightmill.providers.dialects.openai_requests import BodyEncoder
from nightmill.providers.dialects.usage import MOST_OF_A_REQUEST, read_usage
from nightmill.providers.endings import ending

_TEXT_PARTS = (None, "text", "output_text")
_REASONING_PARTS = {"reasoning", "reasoning_text", "reasoning_content", "thinking", "redacted_thinking", "thought"}
_TOOL_PARTS = {"tool_use", "tool_call", "function_call"}

_read_documented = msgspec.json.Decoder(DocumentedBody).decode


class OpenAIChat:
    """The dialect of /v1/chat/completions."""

    takes_schema = True

    def __init__(self, spec: RequestSpec) -> None:
        self._spec = spec
        self._encoder = BodyEncoder(spec, "messages")
        self._limited: dict[int, BodyEncoder] = {}  # by the limit to the answer's tokens

    def encode(self, messages: Sequence[Mapping[str, str]], max_output: int | None = None) -> bytes:
        """One request body."""
        if max_output is None:
            return self._encoder.body(messages)
        if max_output not in self._limited:
            self._limited[max_output] = BodyEncoder(self._spec, "messages", max_output)
        return self._limited[max_output].body(messages)

    def read(self, reply: Reply) -> Answer | Failed | Unreadable:
        """What one reply says."""
        documented = _documented(reply) if reply.status == 200 and not reply.errors else None
        return documented or read_carefully(reply, Body, answer_in)


def _documented(reply: Reply) -> Answer | None:
    try:
        body = _read_documented(reply.body)
    except (ValueError, RecursionError):
        return None
    if not body.choices or not body.choices[0].message.content or not body.choices[0].finish_reason or not body.model:
        return None
    usage = _documented_usage(body.usage)
    if usage is None:
        return None
    choice, model = body.choices[0], body.model
    if len(model) > MOST_MODEL or not model.isprintable():
        return None
    if choice.finish_reason == "stop":
        return Answer(choice.message.content, False, Ending.FINISHED, "stop", model, usage, reply.sanitised)
    reason = word(choice.finish_reason)
    return Answer(choice.message.content, False, ending(reason), reason, model, usage, reply.sanitised)


def _documented_usage(used: DocumentedUsage) -> Usage | None:
    """Counts that add up; None for all others."""
    prompt, completion = used.prompt_tokens, used.completion_tokens
    cached = used.prompt_tokens_details.cached_tokens if used.prompt_tokens_details else None
    reasoning = used.completion_tokens_details.reasoning_tokens if used.completion_tokens_details else None
    fits = 0 < prompt <= MOST_OF_A_REQUEST and 0 <= (cached or 0) <= prompt
    fits = fits and 0 <= (reasoning or 0) <= completion <= MOST_OF_A_REQUEST and completion > 0
    if not fits or (used.total_tokens or prompt + completion) != prompt + completion:
        return None
    return Usage(prompt - (cached or 0), completion, cached, None, reasoning)


def answer_in(body: Body, sanitised: bool) -> Answer | None:
    """The message of a body's first choice."""
    choice = _first_choice(body.choices or [])
    if choice is None or choice.message is None:
        return None
    message = choice.message
    finish_reason = word(choice.finish_reason)
    text, declined = _content(message.content)
    refusal = bool(message.refusal) or declined
    text = None if refusal else text
    model = word(body.model, MOST_MODEL)
    usage = read_usage(body.usage, answered=True, wrote=text is not None)
    instead = _instead(message) if text is None and not refusal else ""
    return Answer(text, refusal, ending(finish_reason), finish_reason, model, usage, sanitised, instead)


def _first_choice(choices: list[Choice]) -> Choice | None:
    """The choice with index 0, wherever it stands; the first one where none has it."""
    return next((one for one in choices if one.index in (0, "0")), choices[0] if choices else None)


def _instead(message: Message) -> Instead:
    """What a message without text holds: a call of a tool, or reasoning without an answer after it."""
    if message.tool_calls or message.function_call:
        return "tool_calls"
    parts = message.content if isinstance(message.content, list) else []
    kinds = {part.get("type") for part in parts if isinstance(part, dict)}
    if kinds & _TOOL_PARTS:
        return "tool_calls"
    return "reasoning" if message.reasoning_content or message.reasoning or kinds & _REASONING_PARTS else ""


def _content(content: object) -> tuple[str | None, bool]:
    """Plain text, or the text parts of a list of parts joined, and whether a part declines to answer.

    What is no text part (reasoning, a call of a tool) is not the answer. An empty message is None.
    """
    declined = False
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        declined = any(part.get("type") == "refusal" for part in parts)
        texts = [part.get("text") for part in parts if part.get("type") in _TEXT_PARTS]
        content = "".join(text for text in texts if isinstance(text, str))
    return (content if isinstance(content, str) and content else None), declined
