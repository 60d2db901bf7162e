"""The odd ways in which an executed line's answer comes back: every kind that was seen at a provider or a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from typing import Any

_DEPTH = 5_000  # brackets; readers give up at some hundred


class Odd(StrEnum):
    """What is odd. The first group is about the line, the second about the text that a model wrote."""

    LOST = "lost"  # stands in neither file
    DOUBLED = "doubled"  # the same line twice
    CONFLICTING = "conflicting"  # two lines of one custom_id with different answers
    THREE_ANSWERS = "three_answers"  # three of them, each with another answer
    OTHER_USAGE = "other_usage"  # the same answer twice, the second time with other usage
    FOREIGN = "foreign"  # beside it a line whose custom_id nobody sent
    BOTH_FILES = "both_files"  # an answer in the output file and an error in the error file
    SWAPPED_FILES = "swapped_files"  # the other way round
    ERROR_OF_NULLS = "error_of_nulls"  # an error object beside the answer, with nothing in it
    STATUS_IN_WORDS = "status_in_words"  # the line's status is a text
    STRING_BODY = "string_body"  # the body is a JSON string that holds the body
    ERROR_IN_BODY = "error_in_body"  # status 200, and the body is an error object
    STATUS_ZERO = "status_zero"  # in the error file: status 0, an empty body, no error
    NO_ANSWER = "no_answer"  # status 200, and the body only repeats the messages
    HALF_LINE = "half_line"  # the line ends in the middle, the next one begins properly
    CRLF = "crlf"
    BLANK_LINE = "blank_line"  # an empty line follows
    BOM = "bom"  # a byte order mark before the line
    NO_USAGE = "no_usage"
    IMPOSSIBLE_USAGE = "impossible_usage"  # more tokens from the cache than in the prompt
    CACHED_USAGE = "cached_usage"  # tokens from the cache, for the cache and of reasoning
    CHOICES_SHUFFLED = "choices_shuffled"  # a second choice stands first
    REASONING_PARTS = "reasoning_parts"  # the content is a list, and reasoning stands in it first
    THOUGHTS = "thoughts"  # the text begins with what the model thought
    OTHER_FINISH = "other_finish"  # another vendor's word for stop
    UNKNOWN_FINISH = "unknown_finish"  # a finish_reason that nobody knows
    REASONING_ONLY = "reasoning_only"  # no content, the text in reasoning_content
    TOOL_CALL = "tool_call"  # no content, a call of a tool
    MODEL_LENGTH = "model_length"  # half of the text, in Mistral's word
    MAX_TOKENS = "max_tokens"  # half of the text, in Anthropic's word
    FINISH_ERROR = "finish_error"  # half of the text, finish_reason error
    TRUNCATED = "truncated"  # half of the text, finish_reason length
    FENCED = "fenced"  # in a Markdown code fence
    ENCODED_TWICE = "encoded_twice"
    PROSE = "prose"  # a polite sentence before and after
    WRONG_TYPE = "wrong_type"  # a list where a value should be
    NUL = "nul"  # in a string value
    LINE_SEPARATOR = "line_separator"  # U+2028, U+2029 and U+0085 in a string value
    SURROGATE = "surrogate"  # half a pair in a string value
    NAN = "nan"
    HUGE_INTEGER = "huge_integer"
    DEEP = "deep"
    DEGRADED = "degraded"  # valid, and wrong: numbers are one too high, lists end early; else a text has lost a word
    EMPTY = "empty"
    REFUSAL = "refusal"
    FILTERED = "filtered"  # finish_reason content_filter
    SPLIT_TEXT = "split_text"  # the text stands in several blocks
    UNKNOWN_BLOCK = "unknown_block"  # a block that nobody knows stands before the text
    UNKNOWN_RESULT = "unknown_result"  # the line's type is a word that nobody knows
    PAUSED = "paused"  # half of the text: the model's turn was paused, to be carried on


# Whoever gets one of these has no usable answer and must ask again, although the first one is paid for.
SPOILING = frozenset(
    {
        Odd.LOST,
        Odd.CONFLICTING,
        Odd.THREE_ANSWERS,
        Odd.REASONING_ONLY,
        Odd.TOOL_CALL,
        Odd.MODEL_LENGTH,
        Odd.MAX_TOKENS,
        Odd.FINISH_ERROR,
        Odd.ERROR_IN_BODY,
        Odd.STATUS_ZERO,
        Odd.NO_ANSWER,
        Odd.HALF_LINE,
        Odd.TRUNCATED,
        Odd.PROSE,
        Odd.WRONG_TYPE,
        Odd.NAN,
        Odd.HUGE_INTEGER,
        Odd.DEEP,
        Odd.EMPTY,
        Odd.REFUSAL,
        Odd.FILTERED,
        Odd.UNKNOWN_RESULT,
        Odd.PAUSED,
    }
)


def odd_text(odd: Odd, text: str) -> str:
    """What a model wrote, oddly; the same text where the kind is not one of TEXT_KINDS."""
    change = _TEXTS.get(odd)
    return text if change is None else change(text)


def odd_bytes(odd: Odd, line: bytes) -> list[bytes]:
    """The line as a careless program writes it."""
    match odd:
        case Odd.HALF_LINE:
            return [line[: len(line) // 2] + b"\n"]
        case Odd.CRLF:
            return [line[:-1] + b"\r\n"]
        case Odd.BLANK_LINE:
            return [line, b"\n"]
        case Odd.BOM:
            return [b"\xef\xbb\xbf" + line]
        case _:
            return [line]


def _replaced(text: str, kinds: tuple[type, ...], change: Callable[[Any], Any]) -> str:
    """The JSON object in `text` with its first value of these types changed; any other text is changed as a whole."""
    try:
        value = json.loads(text)
    except ValueError:
        return str(change(text))
    names = [name for name, one in value.items() if isinstance(one, kinds)] if isinstance(value, dict) else []
    if not names:
        return str(change(text))
    return json.dumps({**value, names[0]: change(value[names[0]])}, ensure_ascii=False)


def _degraded(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        return _without_last_word(text)
    worse = {name: _worse(one) for name, one in value.items()}
    return _replaced(text, (str,), _without_last_word) if worse == value else json.dumps(worse, ensure_ascii=False)


def _worse(value: Any) -> Any:
    if isinstance(value, list):
        return value[:-1]
    return value + 1 if isinstance(value, int | float) and not isinstance(value, bool) else value


def _without_last_word(text: str) -> str:
    return text.rpartition(" ")[0]


_TEXTS: dict[Odd, Callable[[str], str]] = {
    Odd.CONFLICTING: lambda text: _replaced(text, (str,), lambda value: f"{value} or another"),
    Odd.THREE_ANSWERS: lambda text: _replaced(text, (str,), lambda value: f"{value} or yet another"),
    **dict.fromkeys(
        (Odd.TRUNCATED, Odd.MODEL_LENGTH, Odd.MAX_TOKENS, Odd.FINISH_ERROR, Odd.PAUSED),
        lambda text: text[: len(text) // 2],
    ),
    Odd.THOUGHTS: lambda text: f"<think>\nIt is {{simple}}.\n</think>\n\n{text}",
    Odd.FENCED: lambda text: f"```json\n{text}\n```",
    Odd.ENCODED_TWICE: lambda text: json.dumps(text, ensure_ascii=False),
    Odd.PROSE: lambda text: f"Here is what you asked for:\n\n{text}\n\nTell me if you need more.",
    Odd.WRONG_TYPE: lambda text: _replaced(text, (object,), lambda value: [value]),
    Odd.NUL: lambda text: _replaced(text, (str,), lambda value: f"{value}\0"),
    Odd.LINE_SEPARATOR: lambda text: _replaced(text, (str,), lambda value: f"{value}\u2028\u2029\x85."),
    Odd.SURROGATE: lambda text: _replaced(text, (str,), lambda value: f"{value}\ud83d"),
    Odd.NAN: lambda text: _replaced(text, (int, float), lambda _: float("nan")),
    Odd.HUGE_INTEGER: lambda text: _replaced(text, (int, float), lambda _: 10**400),
    Odd.DEEP: lambda _: "[" * _DEPTH + "]" * _DEPTH,
    Odd.DEGRADED: _degraded,
    Odd.EMPTY: lambda _: "",
}
TEXT_KINDS = frozenset(_TEXTS)
