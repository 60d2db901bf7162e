"""What went wrong decides what happens next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmill.domain.classification import (
    classify,
    classify_line_error,
    classify_unfinished_answer,
    lost_line,
    never_processed,
)
from nightmill.domain.endings import Ending
from nightmill.domain.failure_rules import ENDINGS, RULES, Symptoms
from nightmill.domain.failures import MESSAGE_LIMIT, Failure, FailureClass, Instead
from nightmill.providers.endings import ending

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


CONTEXT = "request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it"


@pytest.mark.parametrize(
    ("status", "code", "message", "kind", "named"),
    [
        (0, "provider_unknown", f"Error code: 400 - {CONTEXT}", INPUT, "context_length_exceeded"),
        (0, "request_failed", f"Error code: 400 - {CONTEXT}", INPUT, "context_length_exceeded"),
        (0, "provider_unknown", CONTEXT, INPUT, "context_length_exceeded"),
        (500, "", CONTEXT, INPUT, "context_length_exceeded"),
        (200, "", "This model's maximum context length is 8192 tokens.", INPUT, "context_length_exceeded"),
        (400, "", "prompt is too long: 210000 tokens > 200000 maximum", INPUT, "context_length_exceeded"),
        (0, "provider_unknown", "Error code: 400 - {'error': {'code': 'invalid_value'}}", INPUT, "http_400"),
        (0, "provider_unknown", "Error code: 429 - rate limited", TRANSIENT, "http_429"),
        (0, "provider_unknown", "Error code: 503 - context size of the pool", TRANSIENT, "http_503"),
        (0, "provider_unknown", "HTTP 404 Not Found", INPUT, "http_404"),
        (0, "provider_unknown", "401 Unauthorized", INPUT, "http_401"),
        (0, "provider_unknown", "Request failed with status code 422", INPUT, "http_422"),
        (0, "provider_unknown", "Error code: 402 - pay first", CAPACITY, "http_402"),
        (0, "provider_unknown", "The queue holds 400 requests", TRANSIENT, "provider_unknown"),
        (0, "provider_unknown", "Error code: 400 - {'error': {'code': 'content_filter'}}", POLICY, "http_400"),
        (0, "400", "", INPUT, "400"),
        (0, "BadRequestError", "", INPUT, "BadRequestError"),
        (0, "INVALID_ARGUMENT", "", INPUT, "INVALID_ARGUMENT"),
        (0, "ThrottlingException", "", TRANSIENT, "ThrottlingException"),
        (0, "invalid_request_error", "Error code: 500 - it broke", TRANSIENT, "invalid_request_error"),
    ],
)
def test_a_line_without_a_status_is_classified_by_what_its_words_say(
    status: int, code: str, message: str, kind: FailureClass, named: str
) -> None:
    failure = classify_line_error(status, code, message)
    assert (failure.kind, failure.code) == (kind, named)


@pytest.mark.parametrize(
    ("status", "code", "message", "unpaid"),
    [
        (400, "", "", True),
        (0, "provider_unknown", f"Error code: 400 - {CONTEXT}", True),
        (500, "", CONTEXT, True),
        (429, "rate_limit_exceeded", "", True),
        (402, "", "", True),
        (0, "batch_expired", "", True),
        (0, "batch_cancelled", "", True),
        (408, "", "", False),
        (499, "", "", False),
        (500, "server_error", "", False),
        (0, "provider_unknown", "", False),
        (200, "conflicting_lines", "", False),
        (200, "provider_protocol_error", "", False),
    ],
)
def test_a_request_that_was_refused_was_never_processed_and_one_that_broke_off_may_have_been(
    status: int, code: str, message: str, unpaid: bool
) -> None:
    assert never_processed(status, code, message) is unpaid


def test_the_broader_word_of_an_error_counts_where_its_code_says_little() -> None:
    assert classify_line_error(429, "429", "", type="insufficient_quota").kind is CAPACITY
    assert classify_line_error(400, "", "", type="insufficient_quota").code == "insufficient_quota"


def test_nothing_failed_where_nothing_was_seen_and_every_rule_decides_something() -> None:
    assert classify(Symptoms()) is None
    assert classify(Symptoms(batch_status="running")) is None
    assert classify(Symptoms(batch_status="unknown")) == Failure(FailureClass.UNKNOWN, "unknown_status", "")
    assert {rule.kind for rule in (*RULES, *ENDINGS)} == set(FailureClass) - {FailureClass.SINK}


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
        ("model_length", False, '{"a": 1', OUTPUT, "truncated"),
        ("max_tokens", False, '{"a": 1}', OUTPUT, "truncated"),
        ("MAX_TOKENS", False, '{"a": 1', OUTPUT, "truncated"),
        ("FinishReason.MAX_TOKENS", False, '{"a": 1', OUTPUT, "truncated"),
        ("max-output-tokens", False, None, OUTPUT, "truncated"),
        ("error", False, '{"a": 1}', TRANSIENT, "generation_failed"),
        ("insufficient_system_resource", False, '{"a": 1', TRANSIENT, "generation_failed"),
        ("SAFETY", False, "", POLICY, "content_filter"),
        ("sensitive", False, '{"a": 1', POLICY, "content_filter"),
        ("refusal", False, "I cannot", OUTPUT, "refusal"),
        ("tool_calls", False, None, OUTPUT, "tool_calls"),
        ("tool_use", False, " ", OUTPUT, "tool_calls"),
    ],
)
def test_an_answer_that_must_not_be_parsed_is_a_failure(
    finish: str | None, refusal: bool, text: str | None, kind: FailureClass, code: str
) -> None:
    failure = classify_unfinished_answer(ending(finish), refusal, text)
    assert failure is not None
    assert (failure.kind, failure.code) == (kind, code)


@pytest.mark.parametrize("instead", ["reasoning", "tool_calls"])
def test_a_message_without_text_says_what_it_holds_in_its_place(instead: Instead) -> None:
    failure = classify_unfinished_answer(Ending.FINISHED, False, None, instead)
    assert failure is not None
    assert (failure.kind, failure.code) == (OUTPUT, {"reasoning": "reasoning_only"}.get(instead, instead))
    assert classify_unfinished_answer(Ending.FINISHED, False, '{"a": 1}', instead) is None


@pytest.mark.parametrize("finish", ["stop", None, "tool_calls", "eos_token", "end_turn", "COMPLETE", "hit_the_wall"])
def test_a_finished_answer_may_be_parsed(finish: str | None) -> None:
    assert classify_unfinished_answer(ending(finish), False, '{"a": 1}') is None


def test_waiting_spends_no_retry_budget_and_only_transient_and_output_are_tried_again() -> None:
    failures = {kind: Failure(kind, "x", "") for kind in FailureClass}
    waiting = {kind for kind, failure in failures.items() if not failure.spends_retry_budget}
    assert waiting == {CAPACITY, FailureClass.UNKNOWN}
    assert {kind for kind, failure in failures.items() if failure.retryable} == {TRANSIENT, OUTPUT}


def test_a_lost_line_is_asked_for_again() -> None:
    assert lost_line().retryable
