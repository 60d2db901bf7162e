"""The table that decides the class of a failure: the first rule that holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nightmill.domain.endings import Ending
from nightmill.domain.error_words import says_longer_than_context
from nightmill.domain.failures import FailureClass, Instead


@dataclass(frozen=True, slots=True)
class Symptoms:
    """All that can be seen of a failure; what was not seen keeps its default.

    `status` is an HTTP status: of a call, or the one that a result line carries or states in words (0 when it does
    neither). `code` and `type` are the provider's words, `message` its prose. `ending` is how an answer ended.
    `instead` is what a message holds in place of text. `batch_status` is our word for where a batch stands.
    """

    status: int | None = None
    code: str = ""
    type: str = ""
    message: str = ""
    refused: bool = False
    ending: Ending | None = None
    empty: bool = False
    instead: Instead = ""
    missing: bool = False
    batch_status: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the table. `evidence` is for people; `code` None keeps the provider's own code."""

    evidence: str
    kind: FailureClass
    holds: Callable[[Symptoms], bool]
    code: str | None = None
    message: str | None = None


NO_CODE = "provider_unknown"  # an error line that does not say why
CONFLICTING_LINES = "conflicting_lines"  # two lines answer one request, each in its own way: neither counts
_BILLING_CODES = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
_BILLING_WORDS = ("credit balance", "billing hard limit", "exceeded your current quota")
_QUEUE_FULL_CODES = ("token_limit_exceeded",)  # the account's enqueued-token limit: waiting helps
_INPUT_CODES = ("context_length_exceeded", "string_above_max_length", "invalid_image")
_POLICY_CODES = ("content_filter", "content_policy_violation", "moderation_blocked")
_TRANSIENT_CODES = (
    "batch_expired",
    "batch_cancelled",
    "provider_protocol_error",  # the line says 200 and holds no answer
    CONFLICTING_LINES,
)
# A line that was still waiting when its batch expired or was cancelled : it cost nothing.
NEVER_EXECUTED = frozenset({"batch_expired", "batch_cancelled"})
_TRANSIENT_STATUSES = (0, 408, 409, 425, 429)
_CONTEXT_STATUSES = (0, 400, 413, 422, 500)  # under which a message about the context window is about the request
UNCLEAR_STATUSES = (408, 499)  # somebody stopped waiting: it may have been processed


def _says(codes: tuple[str, ...]) -> Callable[[Symptoms], bool]:
    """By code or type; where there is no code, also by a code that stands in the message."""
    return lambda seen: (
        seen.code in codes
        or seen.type in codes
        or (seen.code in ("", NO_CODE) and any(code in seen.message for code in codes))
    )


def _is_about_money(seen: Symptoms) -> bool:
    lowered = seen.message.lower()
    return _says(_BILLING_CODES)(seen) or seen.status == 402 or any(word in lowered for word in _BILLING_WORDS)


def _is_transient(seen: Symptoms) -> bool:
    return seen.status is not None and (seen.status in _TRANSIENT_STATUSES or seen.status >= 500)


def _is_refused_call(seen: Symptoms) -> bool:
    return seen.status is not None and (400 <= seen.status < 500 or "invalid_request_error" in (seen.code, seen.type))


def _is_longer_than_context(seen: Symptoms) -> bool:
    counts = seen.status is not None and (seen.status in _CONTEXT_STATUSES or 200 <= seen.status < 300)
    return counts and says_longer_than_context(seen.message)


def _ended(*endings: Ending) -> Callable[[Symptoms], bool]:
    return lambda seen: seen.ending in endings


def _listed(codes: tuple[str, ...]) -> str:
    return ", ".join(f"`{code}`" for code in codes)


RULES = (
    Rule(
        "a batch has a status that the adapter does not know",
        FailureClass.UNKNOWN,
        lambda seen: seen.batch_status == "unknown",
        "unknown_status",
    ),
    Rule(
        "a request stands in neither result file of a batch that ended",
        FailureClass.TRANSIENT,
        lambda seen: seen.missing,
        "lost_line",
        "the provider returned no line for this request",
    ),
    Rule(
        f"the account has no money left: code or type {_listed(_BILLING_CODES)}, status 402, or a message with "
        + ", ".join(f'"{words}"' for words in _BILLING_WORDS),
        FailureClass.CAPACITY,
        _is_about_money,
    ),
    Rule(f"code or type {_listed(_QUEUE_FULL_CODES)}", FailureClass.CAPACITY, _says(_QUEUE_FULL_CODES)),
    Rule(f"code or type {_listed(_POLICY_CODES)}", FailureClass.POLICY, _says(_POLICY_CODES)),
    Rule(f"code or type {_listed(_INPUT_CODES)}", FailureClass.INPUT, _says(_INPUT_CODES)),
    Rule(
        "a message about the model's context size, length or window, or about a prompt that is too long, under status "
        f"{', '.join(map(str, _CONTEXT_STATUSES))} or 200",
        FailureClass.INPUT,
        _is_longer_than_context,
        "context_length_exceeded",
    ),
    Rule(f"code or type {_listed(_TRANSIENT_CODES)}", FailureClass.TRANSIENT, _says(_TRANSIENT_CODES)),
    Rule(
        "status "
        + ", ".join(map(str, _TRANSIENT_STATUSES))
        + " (0: neither number nor words state one) or 500 and above",
        FailureClass.TRANSIENT,
        _is_transient,
    ),
    Rule("any other status of 400 to 499, or type `invalid_request_error`", FailureClass.INPUT, _is_refused_call),
    Rule(
        "an error under any other status, such as an error object in a body with status 200",
        FailureClass.TRANSIENT,
        lambda seen: seen.status is not None,
    ),
)

# How a message ended, which its text cannot tell.
ENDINGS = (
    Rule(
        "the model refused to answer: a refusal, or a finish reason that says so",
        FailureClass.OUTPUT,
        lambda seen: seen.refused or seen.ending is Ending.REFUSED,
        "refusal",
        "the model refused to answer",
    ),
    Rule(
        "the finish reason says that the answer was filtered",
        FailureClass.POLICY,
        _ended(Ending.FILTERED),
        "content_filter",
        "the provider filtered the answer",
    ),
    Rule(
        "the finish reason says that a token limit ended the answer, whatever the text looks like",
        FailureClass.OUTPUT,
        _ended(Ending.TRUNCATED),
        "truncated",
        "the answer ended at the token limit",
    ),
    Rule(
        "the finish reason says that generating the answer broke off, whatever the text looks like",
        FailureClass.TRANSIENT,
        _ended(Ending.FAILED),
        "generation_failed",
        "the provider broke the answer off",
    ),
    Rule(
        "a message without text that calls a tool",
        FailureClass.OUTPUT,
        lambda seen: seen.empty and (seen.instead == "tool_calls" or seen.ending is Ending.TOOLS),
        "tool_calls",
        "the model called a tool instead of answering",
    ),
    Rule(
        "a message without text that holds reasoning",
        FailureClass.OUTPUT,
        lambda seen: seen.empty and seen.instead == "reasoning",
        "reasoning_only",
        "the message holds reasoning and no answer; raise the limit to its tokens or ask for less reasoning",
    ),
    Rule(
        "a message without text",
        FailureClass.TRANSIENT,
        lambda seen: seen.empty,
        "empty_answer",
        "the message has no content",
    ),
)
