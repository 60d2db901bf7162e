"""Reads result lines of OpenAI batches and of nearly compatible servers, one at a time.

No line can stop the ones after it: whatever is wrong with it becomes a value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator

import msgspec

from nightmill.domain.error_words import status_in
from nightmill.domain.failures import Instead
from nightmill.domain.finish_reasons import Ending, ending
from nightmill.providers.cleaning import MOST_DIGITS, MOST_MODEL, SURROGATES, word
from nightmill.providers.openai_line_errors import line_error, says_anything
from nightmill.providers.openai_line_shapes import (
    Body,
    Choice,
    DocumentedBody,
    DocumentedUsage,
    Line,
    Message,
    Response,
)
from nightmill.providers.openai_shapes import DocumentedLine
from nightmill.providers.openai_usage import MOST_OF_A_REQUEST, NO_USAGE, read_usage
from nightmill.providers.openai_vectors import counted, documented_vector, vector_in
from nightmill.providers.port import Answer, Embedding, LineError, ResultLine, Unreadable, Usage
from nightmill.providers.result_files import BOM

PROTOCOL_ERROR = "provider_protocol_error"
_TEXT_PARTS = (None, "text", "output_text")
_REASONING_PARTS = {"reasoning", "reasoning_text", "reasoning_content", "thinking", "redacted_thinking", "thought"}
_TOOL_PARTS = {"tool_use", "tool_call", "function_call"}


def _finite(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None


_read_documented = msgspec.json.Decoder(DocumentedLine[DocumentedBody]).decode
_read_line = msgspec.json.Decoder(Line, float_hook=_finite).decode
_read_body = msgspec.json.Decoder(Body, float_hook=_finite).decode
_read_text = msgspec.json.Decoder(str).decode


def read_lines(lines: Iterable[bytes], *, vectors: bool = False) -> Iterator[ResultLine]:
    """One value for each line that is not blank. Line numbers count the blank ones too.

    `vectors`: the batch went to the embeddings endpoint, so answers are Embedding instead of Answer.
    """
    for number, line in enumerate(lines, 1):
        bare = line.removeprefix(BOM)  # also in the middle, where a server glues files together
        if bare.strip():
            yield read_line(bare, number, vectors=vectors)


def read_line(line: bytes, number: int, *, vectors: bool = False) -> ResultLine:
    """What one line says; `number` is only for Unreadable."""
    documented = documented_vector(line) if vectors else _documented(line)
    if documented is not None:
        return documented
    try:
        try:
            return _interpret(line, vectors, sanitised=False)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _interpret(_repaired(line), vectors, sanitised=True)
    except msgspec.ValidationError:
        return Unreadable(number, "not a result object with a custom_id")
    except RecursionError:
        return Unreadable(number, "nested too deeply")
    except ValueError:
        return Unreadable(number, "not JSON")


def _documented(line: bytes) -> Answer | None:
    try:
        parsed = _read_documented(line)
    except (ValueError, RecursionError):
        return None
    body = parsed.response.body
    if not body.choices or not body.choices[0].message.content or not body.choices[0].finish_reason or not body.model:
        return None
    usage = _documented_usage(body.usage)
    if usage is None:
        return None
    choice, model = body.choices[0], body.model
    reason = choice.finish_reason if choice.finish_reason == "stop" else word(choice.finish_reason)
    if len(model) > MOST_MODEL or not model.isprintable():
        return None
    return Answer(parsed.custom_id, choice.message.content, False, reason, model, usage)


def _documented_usage(used: DocumentedUsage) -> Usage | None:
    """Counts that add up; None for all others."""
    prompt, completion = used.prompt_tokens, used.completion_tokens
    cached = used.prompt_tokens_details.cached_tokens if used.prompt_tokens_details else None
    reasoning = used.completion_tokens_details.reasoning_tokens if used.completion_tokens_details else None
    fits = 0 < prompt <= MOST_OF_A_REQUEST and 0 <= (cached or 0) <= prompt
    fits = fits and 0 <= (reasoning or 0) <= completion <= MOST_OF_A_REQUEST and completion > 0
    if not fits or (used.total_tokens or prompt + completion) != prompt + completion:
        return None
    return Usage(prompt, completion, cached, None, reasoning)


def _interpret(line: bytes, vectors: bool, *, sanitised: bool) -> ResultLine:
    parsed = _read_line(line)
    response = parsed.response or Response()
    status, body = status_in(response.status_code), _body(response)
    beside = [one for one in (parsed.error, response.error) if says_anything(one)]
    in_body = [body.error] if body is not None and says_anything(body.error) else []
    succeeded = status == 0 or 200 <= status < 300
    if body is not None and succeeded and not in_body:
        answer = _vector(parsed.custom_id, body, sanitised) if vectors else _answer(parsed.custom_id, body, sanitised)
        if answer is not None and (not beside or _is_finished(answer)):
            return answer
    usage = read_usage(body.usage) if body is not None else NO_USAGE
    errors = [*beside, *in_body, *_flat_errors(body, response, succeeded and status > 0)]
    if errors or not succeeded or status == 0:
        return line_error(parsed.custom_id, status, errors, usage)
    return LineError(parsed.custom_id, status, PROTOCOL_ERROR, "the body carries no answer", usage)


def _is_finished(answer: Answer | Embedding) -> bool:
    """Whether an answer is one, whatever error stands beside it."""
    return isinstance(answer, Embedding) or bool(answer.text and ending(answer.finish_reason) is Ending.FINISHED)


def _vector(custom_id: str, body: Body, sanitised: bool) -> Embedding | None:
    vector = vector_in(body.data)
    if vector is None:
        return None
    usage = counted(read_usage(body.usage, answered=True))
    return Embedding(custom_id, vector, word(body.model, MOST_MODEL), usage, sanitised)


def _answer(custom_id: str, body: Body, sanitised: bool) -> Answer | None:
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
    return Answer(custom_id, text, refusal, finish_reason, model, usage, sanitised, instead)


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


def _body(response: Response) -> Body | None:
    """The body, also when a server writes it as a JSON string. None when it is not a body at all."""
    raw = bytes(response.body)
    try:
        return _read_body(_read_text(raw) if raw.startswith(b'"') else raw)
    except msgspec.ValidationError:
        return _body_with_odd_numbers(raw)
    except msgspec.DecodeError:
        if raw.startswith(b'"'):
            return None  # the string holds something else than JSON
        raise


def _body_with_odd_numbers(raw: bytes) -> Body | None:
    """A number of 5,000 digits beside the answer does not cost the answer."""
    try:
        return _read_body(_repaired(_read_text(raw).encode() if raw.startswith(b'"') else raw))
    except ValueError:
        return None


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


def _flat_errors(body: Body | None, response: Response, is_success: bool) -> list[object]:
    """Errors whose fields lie in the body itself, as vLLM and FastAPI write them, or a body that is a mere text."""
    if body is None:
        raw = bytes(response.body)
        return [_read_text(raw)] if raw.startswith(b'"') and not is_success else []
    flat = {"message": body.message, "code": body.code, "type": body.type, "detail": body.detail}
    speaks = says_anything(body.message) or says_anything(body.detail) or not is_success
    return [one for one in (flat if speaks else None, body.errors) if says_anything(one)]


def _repaired(line: bytes) -> bytes:
    """The line as strict JSON: half surrogate pairs and bytes that are not UTF-8 become U+FFFD, NaN and numbers that
    are too long become null.

    Servers written in Python emit all of them, and the answer beside them is paid for. Raises ValueError for what is
    not JSON even so.
    """
    text = line.decode("utf-8", "replace")
    value = json.loads(text, parse_constant=_null, parse_float=_finite, parse_int=_short)
    return SURROGATES.sub("\ufffd", json.dumps(value, ensure_ascii=False)).encode()


def _null(_constant: str) -> None:
    return None


def _short(digits: str) -> int | None:
    return int(digits) if len(digits) <= MOST_DIGITS else None
