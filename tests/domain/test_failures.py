"""What went wrong decides what happens next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmill.domain.failures import (
    MESSAGE_LIMIT,
    RULES,
    Failure,
    FailureClass,
    Seen,
    classify,
    classify_line_error,
    classify_unfinished_answer,
    lost_line,
    rejected,
)

TRANSIENT, CAPACITY, INPUT = FailureClass.TRANSIENT, FailureClass.CAPACITY, FailureClass.INPUT
OUTPUT, POLICY = FailureClass.OUTPUT, FailureClass.POLICY


@pytest.mark.parametrize(
    ("status", "code", "message", "kind"),
    [
        (429, "rate_limit_exceeded", "Rate limit reached", TRANSIENT),
        (429, "", "Too many requests", TRANSIENT),
        (500, "server_error", "The server had an error", TRANSIENT),
        (503, "", "overloaded", TRANSIENT),
        (408, "", "timeout", TRANSIENT),
        (409, "", "conflict", TRANSIENT),
        (0, "batch_expired", "This request could not be executed before the completion window expired.", TRANSIENT),
        (0, "batch_cancelled", "", TRANSIENT),
        (0, "", "", TRANSIENT),
        (429, "insufficient_quota", "You exceeded your current quota", CAPACITY),
        (400, "billing_hard_limit_reached", "Billing hard limit has been reached", CAPACITY),
        (400, "invalid_request_error", "Your credit balance is too low to access the API", CAPACITY),
        (400, "token_limit_exceeded", "Enqueued token limit reached", CAPACITY),
        (400, "context_length_exceeded", "This model's maximum context length is 128000 tokens", INPUT),
        (400, "invalid_request_error", "Invalid value", INPUT),
        (404, "model_not_found", "no such model", INPUT),
        (422, "", "unprocessable", INPUT),
        (400, "content_filter", "filtered", POLICY),
        (500, "content_policy_violation", "violates", POLICY),
        (200, "server_error", "The engine is overloaded", TRANSIENT),
        (200, "provider_unknown", "", TRANSIENT),
        (200, "invalid_request_error", "max_tokens: Field required", INPUT),
        (400, "provider_unknown", "The model does not support Embeddings API", INPUT),
        (402, "", "payment required", CAPACITY),
        (529, "overloaded_error", "Overloaded", TRANSIENT),
        (200, "conflicting_lines", "", TRANSIENT),
    ],
)
def test_an_error_line_has_its_class(status: int, code: str, message: str, kind: FailureClass) -> None:
    assert classify_line_error(status, code, message).kind is kind


def test_the_broader_word_of_an_error_counts_where_its_code_says_little() -> None:
    assert classify_line_error(429, "429", "", type="insufficient_quota").kind is CAPACITY
    assert classify_line_error(400, "", "", type="insufficient_quota").code == "insufficient_quota"


def test_nothing_failed_where_nothing_was_seen_and_every_rule_decides_something() -> None:
    assert classify(Seen()) is None
    assert classify(Seen(batch_status="running")) is None
    assert classify(Seen(batch_status="unknown")) == Failure(FailureClass.UNKNOWN, "unknown_status", "")
    assert rejected("schema", "title: missing") == Failure(OUTPUT, "schema", "title: missing")
    assert {rule.kind for rule in RULES} == set(FailureClass) - {FailureClass.SINK}


@given(st.integers(0, 599), st.text(max_size=20), st.text(max_size=3_000))
def test_any_error_line_is_classified_with_a_code_and_a_short_message(status: int, code: str, message: str) -> None:
    failure = classify_line_error(status, code, message)
    assert failure.code
    assert len(failure.message) <= MESSAGE_LIMIT
    assert message.startswith(failure.message)


@pytest.mark.parametrize(
    ("finish", "refusal", "text", "kind", "code"),
    [
        ("stop", True, '{"a": 1}', OUTPUT, "refusal"),
        ("content_filter", False, '{"a": 1}', POLICY, "content_filter"),
        ("length", False, '{"a": 1', OUTPUT, "truncated"),
        ("length", False, '{"a": 1}', OUTPUT, "truncated"),
        ("stop", False, None, TRANSIENT, "empty_answer"),
        ("stop", False, " \n", TRANSIENT, "empty_answer"),
        (None, False, "", TRANSIENT, "empty_answer"),
    ],
)
def test_an_answer_that_must_not_be_parsed_is_a_failure(
    finish: str | None, refusal: bool, text: str | None, kind: FailureClass, code: str
) -> None:
    failure = classify_unfinished_answer(finish, refusal, text)
    assert failure is not None
    assert (failure.kind, failure.code) == (kind, code)


@pytest.mark.parametrize("finish", ["stop", None, "tool_calls"])
def test_a_finished_answer_may_be_parsed(finish: str | None) -> None:
    assert classify_unfinished_answer(finish, False, '{"a": 1}') is None


def test_waiting_spends_no_retry_budget_and_only_transient_and_output_are_tried_again() -> None:
    failures = {kind: Failure(kind, "x", "") for kind in FailureClass}
    waiting = {kind for kind, failure in failures.items() if not failure.spends_retry_budget}
    assert waiting == {CAPACITY, FailureClass.UNKNOWN}
    assert {kind for kind, failure in failures.items() if failure.retryable} == {TRANSIENT, OUTPUT}


def test_a_lost_line_is_asked_for_again() -> None:
    assert lost_line().retryable
