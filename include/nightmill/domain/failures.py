"""What went wrong with one request, as a value: the class decides what happens next.

One pure function per kind of evidence. Messages are the provider's or ours, cut to `MESSAGE_LIMIT` characters; they
are kept in the ledger only and never logged, because a provider may quote the document in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MESSAGE_LIMIT = 500


class FailureClass(StrEnum):
    """Why an attempt failed, by what can be done about it."""

    TRANSIENT = "transient"  # trying again can help: rate limits, server errors, lost or expired lines
    CAPACITY = "capacity"  # budgets, quotas, queues: wait, never the item's fault
    INPUT = "input"  # the request itself cannot be served
    OUTPUT = "output"  # an answer came that the contract does not accept
    POLICY = "policy"  # refused or filtered by a rule
    SINK = "sink"  # our own database or object store


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt. `code` is a stable machine word, `message` is for the dead letter only."""

    kind: FailureClass
    code: str
    message: str

    @property
    def retryable(self) -> bool:
        """Whether another attempt is worth its price (within the job's cap)."""
        return self.kind in (FailureClass.TRANSIENT, FailureClass.OUTPUT)

    @property
    def spends_retry_budget(self) -> bool:
        """Waiting for capacity never counts against an item."""
        return self.kind is not FailureClass.CAPACITY


_BILLING_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_BILLING_WORDS = ("credit balance", "billing hard limit", "exceeded your current quota")
_CAPACITY_CODES = {"token_limit_exceeded"}
_INPUT_CODES = {"context_length_exceeded", "string_above_max_length", "invalid_image"}
_POLICY_CODES = {"content_filter", "content_policy_violation", "moderation_blocked"}
_TRANSIENT_CODES = {
    "batch_expired",
    "batch_cancelled",
    "provider_unknown",  # the line failed and does not say why
    "provider_protocol_error",  # the line says 200 and holds no answer
}
# A line that was still waiting when its batch expired or was cancelled (OpenAI's Batch guide): it cost nothing.
NEVER_EXECUTED = frozenset({"batch_expired", "batch_cancelled"})
_TRANSIENT_STATUSES = {0, 408, 409, 425, 429}


def classify_line_error(status: int, code: str, message: str) -> Failure:
    """The failure behind an error line. `status` is the line's inner HTTP status, 0 when it carries none."""
    text = message[:MESSAGE_LIMIT]
    lowered = message.lower()
    if code in _BILLING_CODES or any(word in lowered for word in _BILLING_WORDS):
        return Failure(FailureClass.CAPACITY, code or "billing", text)
    if code in _CAPACITY_CODES:
        return Failure(FailureClass.CAPACITY, code, text)
    if code in _POLICY_CODES:
        return Failure(FailureClass.POLICY, code, text)
    if code in _INPUT_CODES:
        return Failure(FailureClass.INPUT, code, text)
    if code in _TRANSIENT_CODES or status in _TRANSIENT_STATUSES or status >= 500:
        return Failure(FailureClass.TRANSIENT, code or f"http_{status}", text)
    return Failure(FailureClass.INPUT, code or f"http_{status}", text)


def classify_unfinished_answer(finish_reason: str | None, refusal: bool, text: str | None) -> Failure | None:
    """The failure of an answer that must not be parsed at all, or None when its text may be read.

    finish_reason is looked at first: a truncated text is never repaired, a refusal never parsed.
    """
    if refusal:
        return Failure(FailureClass.OUTPUT, "refusal", "the model refused to answer")
    if finish_reason == "content_filter":
        return Failure(FailureClass.POLICY, "content_filter", "the provider filtered the answer")
    if finish_reason == "length":
        return Failure(
            FailureClass.OUTPUT, "truncated", "the answer ended at the token limit; raise max_completion_tokens"
        )
    if not text or not text.strip():
        return Failure(FailureClass.TRANSIENT, "empty_answer", "the message has no content")
    return None


def lost_line() -> Failure:
    """A request that stands in neither result file of a batch that ended."""
    return Failure(FailureClass.TRANSIENT, "lost_line", "the provider returned no line for this request")


def does_not_fit() -> Failure:
    """An answer that its model accepts and the view's columns cannot hold, such as a time zone beyond 16 hours."""
    return Failure(FailureClass.OUTPUT, "does_not_fit_column", "the answer does not fit the view's columns")
