"""What the OpenAI adapter makes of answers that a well-behaved server never gives. The client and sockets are real."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from providers.openai_talk import ENDED, HTML, KEY, download, fault_from, lookup, talking_to
from providers.scripted_server import DROPPED, answer, cut, error

from nightmill.domain.errors import ProviderRefused, ProviderUnavailable, SubmitUnknown
from nightmill.domain.snapshots import BatchStatus
from nightmill.providers.call_faults import retry_after_s

NOW = datetime(2025, 3, 1, tzinfo=UTC)
SCOPED = {"organization": "org-1", "project": "proj-1"}


@pytest.mark.parametrize(
    "reply",
    [
        DROPPED,
        cut(b'{"id": "batch_1"', 500, "application/json"),
        cut(b'{"id": "batch_1"', None, "application/json"),
        error("500 Oops", "server_error", "CANARY"),
        error("503 Busy", None),
        error("529 Overloaded", "overloaded_error"),
        error("408 Timeout", None),
        error("409 Conflict", None),
        HTML,
        answer({"object": "list", "data": []}),
        answer({"object": "batch", "status": "validating"}),
        answer([1]),
    ],
)
@pytest.mark.parametrize("max_retries", [0, 2])
def test_c35_c37_an_unclear_end_of_a_create_is_unknown_and_is_sent_once(reply, max_retries):
    with talking_to(lambda request: reply, max_retries=max_retries) as (provider, server):
        fault_from(lambda: provider.create("file-i", "token-1"), SubmitUnknown)
    assert server.paths() == ["POST /v1/batches"]


def test_a_create_that_is_not_answered_in_time_is_unknown():
    import time

    with talking_to(lambda request: time.sleep(1.5) or DROPPED, timeout_s=0.3) as (provider, server):
        fault_from(lambda: provider.create("file-i", "token-1"), SubmitUnknown)
        time.sleep(1.5)
    assert server.paths() == ["POST /v1/batches"]


@pytest.mark.parametrize(("status", "code"), [("400 Bad", "model_mismatch"), ("404 No", "model_not_found")])
def test_a_clear_no_to_a_create_keeps_status_and_code_and_not_the_message(status, code):
    with talking_to(lambda request: error(status, code, "CANARY text")) as (provider, _):
        fault = fault_from(lambda: provider.create("file-i", "t"), ProviderRefused)
    assert (fault.status, fault.code) == (int(status[:3]), code)


def refused(status: str, body: dict) -> bytes:
    return answer({"error": {"type": "invalid_request_error", "code": "invalid_value", **body}}, status)


@pytest.mark.parametrize(
    ("param", "message", "remedy"),
    [
        (
            "completion_window",
            "Invalid value: '24'. Supported values are: '24h'.",
            "Correct provider.completion_window",
        ),
        ("model", "The model `gpt-x` is not available for batches.", "Correct provider.model in job.yaml"),
        ("metadata", "Too many\nkeys", "Correct what it names (provider.model, for one) in job.yaml"),
    ],
)
@pytest.mark.parametrize("status", ["400 Bad", "404 No", "422 Unprocessable"])
def test_a_clear_no_to_a_create_shows_the_parameter_and_what_is_wrong_with_it(status, param, message, remedy):
    with talking_to(lambda request: refused(status, {"param": param, "message": message})) as (provider, _):
        fault = fault_from(lambda: provider.create("file-i", "t"), ProviderRefused)
    assert f"(HTTP {status[:3]}, invalid_value, {param}: {' '.join(message.split()).rstrip('.')})." in fault.cause
    assert fault.remedy.startswith(remedy)
    assert "then cancel this run and start a new one: a run keeps what it was frozen with" in fault.remedy


def test_a_clear_no_in_the_words_of_a_servers_framework_is_shown_too():
    detail = [{"type": "missing", "loc": ["body", "completion_window"], "msg": "Field required", "input": "CANARY"}]
    with talking_to(lambda request: answer({"detail": detail}, "422 Unprocessable")) as (provider, _):
        fault = fault_from(lambda: provider.create("file-i", "t"), ProviderRefused)
    assert "(HTTP 422, completion_window: Field required)." in fault.cause


@pytest.mark.parametrize("param", ["file", "input_file_id", "messages", "body.messages[0].content", "input", "prompt"])
def test_what_is_said_of_a_parameter_that_carries_documents_is_not_shown(param, tmp_path):
    (tmp_path / "in.jsonl").write_bytes(b"{}\n")
    with talking_to(lambda request: refused("400 Bad", {"param": param, "message": "CANARY text"})) as (provider, _):
        for call in (lambda: provider.create("f", "t"), lambda: provider.stage_input(tmp_path / "in.jsonl")):
            assert f"(HTTP 400, invalid_value, {param})" in fault_from(call, ProviderRefused).cause


def test_a_message_that_holds_the_key_is_not_shown():
    body = {"param": "metadata", "message": f"not {KEY}"}
    with talking_to(lambda request: refused("400 Bad", body)) as (provider, _):
        assert "invalid_value, metadata)" in fault_from(lambda: provider.create("f", "t"), ProviderRefused).cause


@pytest.mark.parametrize("status", ["401 Who", "403 No"])
@pytest.mark.parametrize("call", ["submit", "poll", "upload", "download", "cancel", "find"])
def test_a_refused_key_names_the_connection_and_never_the_key(status, call, tmp_path):
    (tmp_path / "in.jsonl").write_bytes(b"{}\n")
    with talking_to(lambda request: error(status, "invalid_api_key", f"Incorrect key {KEY}")) as (provider, _):
        calls = {
            "submit": lambda: provider.create("file-i", "t"),
            "poll": lambda: provider.poll("batch_1"),
            "upload": lambda: provider.stage_input(tmp_path / "in.jsonl"),
            "download": lambda: download(provider, "file-o", tmp_path / "out"),
            "cancel": lambda: provider.cancel("batch_1"),
            "find": lambda: lookup(provider, "file-i", "t", NOW),
        }
        fault = fault_from(calls[call], ProviderRefused)
    assert "llm_night" in fault.remedy


def test_c38_a_long_retry_after_is_handed_on():
    reply = error("429 Slow", "rate_limit_exceeded", retry_after="300")
    with talking_to(lambda request: reply, max_retries=2) as (provider, server):
        assert fault_from(lambda: provider.create("f", "t"), ProviderUnavailable).retry_after_s == 300
        assert fault_from(lambda: provider.poll("batch_1"), ProviderUnavailable).retry_after_s == 300
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "300"}, 300.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "2500", "retry-after": "9"}, 2.5),
        ({"retry-after": format_datetime(NOW + timedelta(minutes=10), usegmt=True)}, 600.0),
        ({"retry-after": format_datetime(NOW - timedelta(minutes=10), usegmt=True)}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_c38_every_form_of_retry_after_is_read(headers, seconds):
    assert retry_after_s(headers, NOW) == seconds


def test_c46_an_empty_account_is_not_a_rate_limit():
    with talking_to(lambda request: error("429 Slow", "insufficient_quota")) as (provider, _):
        fault = fault_from(lambda: provider.create("f", "t"), ProviderRefused)
    assert "credit" in fault.remedy


@pytest.mark.parametrize(
    "reply",
    [
        answer({"detail": "Input file not found"}, "404 No"),
        error("404 No", None, "No such File object: file-i"),
        error("400 No", "invalid", "The input file is not ready"),
    ],
)
def test_c25_an_input_file_that_is_not_visible_yet_can_be_tried_again(reply):
    with talking_to(lambda request: reply) as (provider, _):
        fault_from(lambda: provider.create("file-i", "t"), ProviderUnavailable)


def test_c23_not_found_while_polling_can_be_tried_again():
    with talking_to(lambda request: error("404 No", None)) as (provider, _):
        fault_from(lambda: provider.poll("batch_1"), ProviderUnavailable)


@pytest.mark.parametrize("reply", [HTML, answer({"object": "list", "data": []}), cut(b'{"id":', None)])
def test_c107_a_page_of_a_proxy_is_a_transport_error(reply, tmp_path):
    (tmp_path / "in.jsonl").write_bytes(b"{}\n")
    with talking_to(lambda request: reply) as (provider, _):
        fault_from(lambda: provider.poll("batch_1"), ProviderUnavailable)
        fault_from(lambda: provider.stage_input(tmp_path / "in.jsonl"), ProviderUnavailable)
        fault_from(lambda: provider.cancel("batch_1"), ProviderUnavailable)


def test_polling_repeats_what_is_safe_to_repeat():
    replies = [error("500 Oops", None), answer(ENDED)]
    with talking_to(lambda request: replies.pop(0), max_retries=2) as (provider, _):
        assert provider.poll("batch_1").status is BatchStatus.ENDED


@pytest.mark.parametrize("status", ["400 Bad", "409 Conflict", "404 No"])
def test_c22_cancelling_an_ended_batch_is_fine(status):
    script = {"POST": error(status, None, "Cannot cancel a batch with status failed"), "GET": answer(ENDED)}
    with talking_to(lambda request: script[request.method]) as (provider, _):
        assert provider.cancel("batch_1").status is BatchStatus.ENDED


def test_cancelling_a_running_batch_that_is_refused_is_an_error():
    script = {"POST": error("400 Bad", None), "GET": answer({**ENDED, "status": "in_progress"})}
    with talking_to(lambda request: script[request.method]) as (provider, _):
        fault_from(lambda: provider.cancel("batch_1"), ProviderRefused)


def test_deleting_a_file_that_is_gone_is_fine():
    with talking_to(lambda request: error("404 No", None)) as (provider, _):
        provider.discard_input("file-1")


def test_the_environment_never_chooses_the_account(monkeypatch):
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_KEY", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with talking_to(lambda request: answer(ENDED)) as (provider, server):
        provider.poll("batch_1")
        provider.create("file-i", "t")
    for request in server.requests:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert not {"openai-organization", "openai-project"} & set(request.headers)


def test_organisation_and_project_of_the_connection_are_sent():
    with talking_to(lambda request: answer(ENDED), scopes=SCOPED) as (
        provider,
        server,
    ):
        provider.create("file-i", "t")
    headers = server.requests[0].headers
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-1", "proj-1")
