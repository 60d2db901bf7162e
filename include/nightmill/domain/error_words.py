"""What an error says of itself in words, where no usable HTTP status stands beside it.

Servers that collect errors of other clients keep only their text ("Error code: 400 - ..."), or a type. Words are
compared without case, punctuation and the endings "error" and "exception", so that `invalid_request_error`,
`InvalidRequestError` and `INVALID_REQUEST` are one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus

NONE = 0  # no status is stated

# Words of the vendors, of google.rpc.Code and of the classes of their Python clients.
_WORDS = {
    400: "invalid_request bad_request invalid_argument failed_precondition out_of_range validation request_validation "
    "invalid_value invalid_type unsupported_value unsupported_parameter missing_required_parameter unknown_parameter",
    401: "authentication unauthorized unauthenticated invalid_api_key",
    402: "billing payment_required",
    403: "permission permission_denied access_denied forbidden",
    404: "not_found model_not_found resource_not_found",
    408: "timeout request_timeout api_timeout read_timeout connect_timeout timed_out",
    409: "conflict aborted",
    413: "request_too_large payload_too_large request_entity_too_large content_too_large",
    422: "unprocessable_entity",
    429: "rate_limit rate_limit_exceeded rate_limited too_many_requests throttling resource_exhausted requests tokens",
    500: "server internal internal_server api api_connection engine data_loss",
    501: "unimplemented not_implemented",
    502: "bad_gateway",
    503: "unavailable service_unavailable server_overloaded overloaded engine_overloaded model_not_ready",
    504: "deadline_exceeded gateway_timeout model_timeout",
}
_OTHERS = re.compile(r"[^a-z0-9]")
_ENDINGS = re.compile(r"(error|exception)+\Z")
_PHRASES = "|".join(re.escape(one.phrase) for one in HTTPStatus if one >= 400)
_NUMBER = r"(?<!\d)([45]\d\d)(?!\d)"
# A number counts only where the text says that it is a status: "request (503 tokens) exceeds ..." names none.
_IN_TEXT = re.compile(
    rf"(?:\berror[ _]code|\bstatus(?:[ _-]?code)?|\bhttp(?:/\d(?:\.\d)?)?(?:[ _](?:status|error|code))*|\bcode)"
    rf"""['"]?\s*(?:\bis\b)?[\s:=#('"\[]*{_NUMBER}"""
    rf"|{_NUMBER}['\")\]]?[\s:,-]*(?:{_PHRASES})\b"
    rf"|\A\W*{_NUMBER}(?=\s*(?:[-:,;)\]]|\Z))"
    rf"|\berror\s+{_NUMBER}(?=\s*(?:[-:,;.)\]]|\Z))",
    re.IGNORECASE,
)
_LONGER_THAN_CONTEXT = re.compile(
    r"context[\s_-]?(?:size|length|window)"
    r"|\b(?:prompt|inputs?)\b[^.]{0,40}\btoo (?:long|large)\b"
    r"|\btoo many (?:input|prompt) tokens"
    r"|\btoken count\b.{0,60}\bexceeds\b"
    r"|\bmax_new_tokens\b.{0,40}\bmust be <",
    re.IGNORECASE,
)


def stated_status(status: int | None, words: Sequence[str], message: str) -> int | None:
    """The status of an error: `status` where it is one of an error, else what its words (code, type) or its text state.

    NONE where nothing states one. Whatever `status` was that is no status of an error, such as 0 or 200, is kept then.
    """
    if status is None or 400 <= status <= 599:
        return status
    digits = next((int(word) for word in words if re.fullmatch(r"[45]\d\d", word)), NONE)
    found = _IN_TEXT.search(message)
    in_text = int(next(group for group in found.groups() if group)) if found else NONE
    of_words = next((stated for word in words if (stated := _status_of(word))), NONE)
    if found and found.start() <= 1:  # the text is about this error before all else
        return digits or in_text
    return digits or of_words or in_text or status


def says_longer_than_context(message: str) -> bool:
    """Whether a message says that a request is longer than the model's context window."""
    return bool(_LONGER_THAN_CONTEXT.search(message))


def status_in(value: object) -> int:
    """The HTTP status that a value holds, as a number, as digits, or as text such as "HTTP 503"; NONE for all else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        text = value[:100]
        found = re.search(r"(?<!\d)([1-5]\d\d)(?!\d)", text)
        value = int(found[1]) if found and not re.match(r"\s*[-+]", text) else NONE
    return value if type(value) is int and 100 <= value <= 599 else NONE


@lru_cache(maxsize=1_000)
def _status_of(word: str) -> int:
    return _BY_WORD.get(_bare(word), NONE)


def _bare(word: str) -> str:
    """`ValidationException`, `validation_error` and `#/validation` alike."""
    plain = _OTHERS.sub("", word.casefold())
    return _ENDINGS.sub("", plain) or plain


_BY_WORD = {_bare(word): status for status, words in _WORDS.items() for word in words.split()}
