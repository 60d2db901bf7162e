"""Reads result lines of OpenAI batches and of nearly compatible servers, one at a time.

No line can stop the ones after it: whatever is wrong with it becomes a value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from nightmill.providers.cleaning import MOST_DIGITS, MOST_MODEL, MOST_TOKENS, prose, whole, word
from nightmill.providers.openai_shapes import DocumentedLine
from nightmill.providers.openai_vectors import counted, documented_vector, vector_in
from nightmill.providers.port import Answer, Embedding, LineError, ResultLine, Unreadable, Usage

UNKNOWN_ERROR = "provider_unknown"
PROTOCOL_ERROR = "provider_protocol_error"
_BOM = b"\xef\xbb\xbf"
_SURROGATES = re.compile("[\ud800-\udfff]")
_NO_USAGE = Usage(None, None)


class _Response(msgspec.Struct):
    status_code: Any = None
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: Any = None


class _Message(msgspec.Struct):
    content: Any = None
    refusal: Any = None


class _Choice(msgspec.Struct):
    message: _Message | None = None
    finish_reason: Any = None


class _Body(msgspec.Struct):
    choices: list[_Choice] | None = None
    data: Any = None
    model: Any = None
    usage: Any = None
    error: Any = None
    message: Any = None
    code: Any = None


class _DocumentedMessage(msgspec.Struct, gc=False):
    content: str
    refusal: None = None


class _DocumentedChoice(msgspec.Struct, gc=False):
    message: _DocumentedMessage
    finish_reason: str


class _DocumentedUsage(msgspec.Struct, gc=False):
    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: dict[str, Any] | None = None


class _DocumentedBody(msgspec.Struct, gc=False):
    choices: list[_DocumentedChoice]
    model: str
    usage: _DocumentedUsage
    error: None = None


def _finite(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None


_read_documented = msgspec.json.Decoder(DocumentedLine[_DocumentedBody]).decode
_read_line = msgspec.json.Decoder(_Line, float_hook=_finite).decode
_read_body = msgspec.json.Decoder(_Body, float_hook=_finite).decode
_read_text = msgspec.json.Decoder(str).decode


def read_lines(lines: Iterable[bytes], *, vectors: bool = False) -> Iterator[ResultLine]:
    """One value for each line that is not blank. Line numbers count the blank ones too.

    `vectors`: the batch went to the embeddings endpoint, so answers are Embedding instead of Answer.
    """
    for number, line in enumerate(lines, 1):
        bare = line.removeprefix(_BOM)  # also in the middle, where a server glues files together
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
    used = body.usage
    if not (0 <= used.prompt_tokens <= MOST_TOKENS and 0 <= used.completion_tokens <= MOST_TOKENS):
        return None
    cached = whole(used.prompt_tokens_details.get("cached_tokens")) if used.prompt_tokens_details else None
    usage = Usage(used.prompt_tokens, used.completion_tokens, cached)
    choice, model = body.choices[0], body.model
    reason = choice.finish_reason if choice.finish_reason == "stop" else word(choice.finish_reason)
    if len(model) > MOST_MODEL or not model.isprintable():
        return None
    return Answer(parsed.custom_id, choice.message.content, False, reason, model, usage)


def _interpret(line: bytes, vectors: bool, *, sanitised: bool) -> ResultLine:
    parsed = _read_line(line)
    response = parsed.response
    status = whole(response.status_code) if response else None
    if parsed.error:
        body = _body(response) if response else None
        return _error(parsed.custom_id, status or 0, parsed.error, body)
    if response is None:
        return LineError(parsed.custom_id, 0, UNKNOWN_ERROR, "", _NO_USAGE)
    body = _body(response)
    if status is not None and not 200 <= status < 300:
        return _error(parsed.custom_id, status, body and (body.error or _flat_error(body)), body)
    if body is not None and body.error:
        return _error(parsed.custom_id, status or 0, body.error, body)
    answer = _vector(parsed.custom_id, body, sanitised) if vectors else _answer(parsed.custom_id, body, sanitised)
    if answer is not None:
        return answer
    usage = _usage(body.usage) if body else _NO_USAGE
    return LineError(parsed.custom_id, status or 0, PROTOCOL_ERROR, "the body carries no answer", usage)


def _vector(custom_id: str, body: _Body | None, sanitised: bool) -> Embedding | None:
    vector = vector_in(body.data) if body else None
    if body is None or vector is None:
        return None
    return Embedding(custom_id, vector, word(body.model, MOST_MODEL), counted(_usage(body.usage)), sanitised)


def _answer(custom_id: str, body: _Body | None, sanitised: bool) -> Answer | None:
    if body is None or not body.choices or body.choices[0].message is None:
        return None
    message = body.choices[0].message
    finish_reason = word(body.choices[0].finish_reason)
    refusal = bool(message.refusal)
    text = None if refusal else _content(message.content)
    model = word(body.model, MOST_MODEL)
    return Answer(custom_id, text, refusal, finish_reason, model, _usage(body.usage), sanitised)


def _body(response: _Response) -> _Body | None:
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


def _body_with_odd_numbers(raw: bytes) -> _Body | None:
    """A number of 5,000 digits beside the answer does not cost the answer."""
    try:
        return _read_body(_repaired(_read_text(raw).encode() if raw.startswith(b'"') else raw))
    except ValueError:
        return None


def _content(content: object) -> str | None:
    """Plain text, or the text parts of a list of parts joined. An empty message is None."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) and content else None


def _error(custom_id: str, status: int, error: object, body: _Body | None) -> LineError:
    while isinstance(error, dict) and isinstance(error.get("error"), dict):
        error = error["error"]  # some servers wrap the error object once more
    usage = _usage(body.usage) if body else _NO_USAGE
    if isinstance(error, dict):
        kind = word(error.get("type")) or ""
        code = word(error.get("code")) or kind or UNKNOWN_ERROR
        return LineError(custom_id, status, code, prose(error.get("message")) or "", usage, kind)
    return LineError(custom_id, status, UNKNOWN_ERROR, prose(error) or "", usage)


def _flat_error(body: _Body) -> dict[str, Any]:
    """An error whose fields lie in the body itself, as vLLM writes it."""
    return {"message": body.message, "code": body.code}


def _usage(usage: object) -> Usage:
    """Chat and Responses names. What is missing or not a whole number is None, never 0."""
    if not isinstance(usage, dict):
        return _NO_USAGE
    prompt = whole(usage.get("prompt_tokens", usage.get("input_tokens")))
    completion = whole(usage.get("completion_tokens", usage.get("output_tokens")))
    details = usage.get("prompt_tokens_details", usage.get("input_tokens_details"))
    cached = whole(details.get("cached_tokens")) if isinstance(details, dict) else None
    return Usage(prompt, completion, cached)


def _repaired(line: bytes) -> bytes:
    """The line as strict JSON: half surrogate pairs and bytes that are not UTF-8 become U+FFFD, NaN and numbers that
    are too long become null.

    Servers written in Python emit all of them, and the answer beside them is paid for. Raises ValueError for what is
    not JSON even so.
    """
    text = line.decode("utf-8", "replace")
    value = json.loads(text, parse_constant=_null, parse_float=_finite, parse_int=_short)
    return _SURROGATES.sub("\ufffd", json.dumps(value, ensure_ascii=False)).encode()


def _null(_constant: str) -> None:
    return None


def _short(digits: str) -> int | None:
    return int(digits) if len(digits) <= MOST_DIGITS else None
