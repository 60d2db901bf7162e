"""What the Anthropic adapter makes of answers that no well-behaved server gives. The client and sockets are real."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from providers.scripted_server import DROPPED, Request, ScriptedServer, answer, cut

from nightmill.domain.errors import NightmillError, ProviderRefused, ProviderUnavailable, SubmitUnknown
from nightmill.domain.limits import Dimensions, Limit
from nightmill.domain.snapshots import Absent, BatchStatus, Found, LookupResult, Stopped, Unclear
from nightmill.providers.anthropic import ADAPTER, CAPABILITIES
from nightmill.providers.anthropic.shapes import batch_snapshot
from nightmill.providers.anthropic.transport import AnthropicBatches
from nightmill.providers.connection import ProviderConnection, RequestSpec
from nightmill.providers.port import SentCreate

KEY, TOKEN = "sk-CANARY-key", "0a1b2c3d4e5f6071"
SPEC = RequestSpec("claude", "chat", max_output_tokens=5)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HTML = answer(b"<html>blocked</html>", content_type="text/html")
Script = Callable[[Request], bytes]


def made(batch_id: str = "msgbatch_1", at: datetime = NOW, requests: int = 3, **changed: Any) -> dict[str, Any]:
    counts = dict.fromkeys(("succeeded", "errored", "canceled", "expired"), 0) | {"processing": requests}
    times = {"created_at": at.isoformat(), "expires_at": (at + timedelta(hours=24)).isoformat()}
    batch = {"id": batch_id, "type": "message_batch", "processing_status": "in_progress", "results_url": None}
    return batch | times | {"request_counts": counts, "archived_at": None, "cancel_initiated_at": None} | changed


def ended(batch_id: str = "msgbatch_1", requests: int = 3, **changed: Any) -> dict[str, Any]:
    counts = dict.fromkeys(("processing", "errored", "canceled", "expired"), 0) | {"succeeded": requests}
    url = f"https://elsewhere.example/v1/messages/batches/{batch_id}/results"
    return made(batch_id, processing_status="ended", request_counts=counts, results_url=url) | changed


def refused(status: str, kind: str = "api_error", code: str | None = None, **headers: str) -> bytes:
    error: dict[str, Any] = {"type": kind, "message": "CANARY text"}
    if code:
        error["details"] = {"error_code": code}
    return answer({"type": "error", "error": error, "request_id": "req_1"}, status, **headers)


@contextmanager
def talking_to(script: Script, **settings: Any) -> Iterator[tuple[AnthropicBatches, ScriptedServer]]:
    with ScriptedServer(script).running() as server:
        connection = ProviderConnection("llm_night", server.base_url, KEY, **{"max_retries": 0, **settings})
        transport = AnthropicBatches(connection, SPEC, CAPABILITIES)
        try:
            yield transport, server
        finally:
            transport.close()


def fault_from(call: Callable[[], object], kind: type[NightmillError]) -> Any:
    with pytest.raises(kind) as caught:
        call()
    told = "".join(traceback.format_exception(caught.value))
    assert "CANARY" not in told
    return caught.value


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"custom_id":"t-0-1","params":{}}\n')
    return path


@pytest.mark.parametrize(
    "reply",
    [
        DROPPED,
        cut(b'{"id": "msgbatch_1"', 500, "application/json"),
        cut(b'{"id": "msgbatch_1"', None, "application/json"),
        refused("500 Oops"),
        refused("529 Overloaded", "overloaded_error"),
        refused("408 Timeout"),
        refused("409 Conflict", "conflict_error"),
        answer(b"<html>bad gateway</html>", "400 Bad", "text/html"),
        HTML,
        answer({"data": []}),
        answer([1]),
    ],
)
@pytest.mark.parametrize("max_retries", [0, 2])
def test_an_unclear_end_of_a_create_is_unknown_and_is_sent_once(requests: Path, reply: bytes, max_retries: int) -> None:
    with talking_to(lambda request: reply, max_retries=max_retries) as (transport, server):
        fault_from(lambda: transport.create(requests, TOKEN), SubmitUnknown)
    assert server.paths() == ["POST /v1/messages/batches"]


def test_a_create_that_is_not_answered_in_time_is_unknown(requests: Path) -> None:
    with talking_to(lambda request: time.sleep(1.5) or DROPPED, timeout_s=0.3) as (transport, server):
        fault_from(lambda: transport.create(requests, TOKEN), SubmitUnknown)
        time.sleep(1.5)
    assert server.paths() == ["POST /v1/messages/batches"]


def test_a_create_is_not_carried_to_another_address(requests: Path) -> None:
    moved = answer({}, "307 Moved", location="/v1/elsewhere")
    with talking_to(lambda request: moved) as (transport, server):
        fault_from(lambda: transport.create(requests, TOKEN), SubmitUnknown)
    assert server.paths() == ["POST /v1/messages/batches"]


def test_a_create_announces_its_length_and_goes_out_with_the_connections_key_alone(
    requests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-other")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "other")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://other.example")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "anthropic-workspace-id: wrkspc_other\nauthorization: Bearer other")
    reply = answer(made(), anthropic_workspace_id="wrkspc_1")
    with talking_to(lambda request: reply) as (transport, server):
        handle = transport.create(requests, TOKEN)
    [sent] = server.requests
    assert (sent.headers["x-api-key"], sent.headers["authorization"]) == (KEY, f"Bearer {KEY}")
    assert "anthropic-workspace-id" not in sent.headers
    assert int(sent.headers["content-length"]) == len(sent.body)
    assert json.loads(sent.body)["requests"] == [{"custom_id": "t-0-1", "params": {}}]
    assert (handle.provider_id, handle.raw_status, handle.scopes) == (
        "msgbatch_1",
        "in_progress",
        {"workspace": "wrkspc_1"},
    )
    assert handle.window_ends_at == NOW + timedelta(hours=24)
    assert handle.results_until == NOW + timedelta(days=29)


def test_beta_headers_go_out_with_the_create(requests: Path) -> None:
    with ScriptedServer(lambda request: answer(made())).running() as server:
        spec = RequestSpec("claude", "chat", {"betas": ["output-300k-2026-03-24"]}, max_output_tokens=5)
        transport = AnthropicBatches(ProviderConnection("llm", server.base_url, KEY), spec, CAPABILITIES)
        transport.create(requests, TOKEN)
        transport.close()
    assert server.requests[0].headers["anthropic-beta"] == "output-300k-2026-03-24"


def test_a_full_queue_waits_as_long_as_the_provider_says(requests: Path) -> None:
    message = "This request would exceed your organization's limit of 200,000 batch requests in the queue."
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": message}}
    full = answer(body, "429 Busy", retry_after="7")
    with talking_to(lambda request: full) as (transport, _):
        fault = fault_from(lambda: transport.create(requests, TOKEN), ProviderUnavailable)
    assert (fault.limit, fault.retry_after_s) == (Limit.QUEUE, 7.0)


@pytest.mark.parametrize(
    "reply",
    [
        refused("429 Busy", "rate_limit_error"),
        refused("429 Busy", "rate_limit_error", "enforced_spend_limit_reached", retry_after="5"),
        refused("402 Pay", "billing_error"),
        refused("403 No", "permission_error"),
        refused("401 No", "authentication_error"),
    ],
)
def test_what_only_a_person_can_mend_is_refused_and_says_what_to_do(requests: Path, reply: bytes) -> None:
    with talking_to(lambda request: reply) as (transport, _):
        fault = fault_from(lambda: transport.create(requests, TOKEN), ProviderRefused)
    assert "llm_night" in fault.cause
    assert "then clear the task" in fault.remedy


@pytest.mark.parametrize(
    "reply", [refused("413 Large", "request_too_large"), answer(b"<html>", "413 Large", "text/html")]
)
def test_a_size_that_is_refused_without_a_limit_makes_batches_smaller_in_both_ways(
    requests: Path, reply: bytes
) -> None:
    with talking_to(lambda request: reply) as (transport, _):
        fault = fault_from(lambda: transport.create(requests, TOKEN), ProviderRefused)
    assert fault.too_large == Dimensions(bytes=True, requests=True)


@pytest.mark.parametrize(
    ("status", "kind"),
    [("404 No", ProviderUnavailable), ("503 Busy", ProviderUnavailable), ("429 Busy", ProviderUnavailable)],
)
def test_a_batch_that_is_not_shown_just_now_is_asked_for_again(status: str, kind: type[NightmillError]) -> None:
    with talking_to(lambda request: refused(status)) as (transport, _):
        fault_from(lambda: transport.poll("msgbatch_1"), kind)
        fault_from(lambda: transport.poll("../../secret"), kind)


def test_a_key_of_another_workspace_is_told_and_not_read_as_absence() -> None:
    there = answer({"data": [], "has_more": False}, anthropic_workspace_id="wrkspc_other")
    scopes = {"workspace": "wrkspc_mine"}
    with talking_to(lambda request: there, scopes=scopes) as (transport, server):
        fault = fault_from(lambda: transport.lookup(SentCreate(TOKEN, NOW, 3)), ProviderRefused)
    assert "wrkspc_mine" in fault.cause
    assert "wrkspc_other" in fault.cause
    assert server.requests[0].headers["anthropic-workspace-id"] == "wrkspc_mine"


def looked_up(batches: list[dict[str, Any]], results: bytes = b"", **sent: Any) -> LookupResult:
    """What a lookup of 3 requests finds among these batches, all of whose results are the same."""

    def script(request: Request) -> bytes:
        if request.target.endswith("/results"):
            return answer(results, content_type="application/x-jsonl")
        return answer({"data": batches, "has_more": False}, date=format_datetime(datetime.now(UTC), usegmt=True))

    with talking_to(script) as (transport, _):
        return transport.lookup(SentCreate(TOKEN, NOW, 3, **sent))


def line(name: str) -> bytes:
    return json.dumps({"custom_id": name, "result": {"type": "expired"}}).encode() + b"\n"


OURS, THEIRS = line(f"{TOKEN}-0-7"), line("somebody-1")


def test_a_lost_create_is_found_by_time_and_size_and_proved_by_the_ids_of_its_results() -> None:
    found = looked_up([ended()], OURS)
    assert isinstance(found, Found)
    assert found.snapshot.provider_id == "msgbatch_1"
    assert isinstance(looked_up([ended()], b"\n" + THEIRS + OURS), Found)
    assert isinstance(looked_up([ended()], OURS.rstrip()), Found)
    assert looked_up([ended()], THEIRS) == Absent()
    two = looked_up([ended("msgbatch_1"), ended("msgbatch_2")], OURS)
    assert isinstance(two, Found)
    assert [one.provider_id for one in two.others] == ["msgbatch_2"]


def test_a_batch_of_that_time_and_size_that_has_not_ended_is_a_candidate() -> None:
    found = looked_up([made()])
    assert isinstance(found, Unclear)
    assert [one.provider_id for one in found.candidates] == ["msgbatch_1"]
    assert found.can_change
    assert "msgbatch_1 (made at 2026-03-01 12:00:00 UTC, 3 requests, in_progress)" in found.why
    nameless = looked_up([ended()], b"not json\n")
    assert isinstance(nameless, Unclear)
    assert not nameless.can_change


@pytest.mark.parametrize(
    "batch",
    [made(requests=4), made(at=NOW - timedelta(hours=3)), made(at=NOW + timedelta(hours=7)), made("msgbatch_known")],
)
def test_other_sizes_and_times_and_what_the_ledger_follows_are_no_candidates(batch: dict[str, Any]) -> None:
    assert looked_up([batch], known=frozenset({"msgbatch_known"})) == Absent()


def test_a_batch_that_tells_neither_its_time_nor_its_size_may_be_any() -> None:
    found = looked_up([made(created_at=None, request_counts={})])
    assert isinstance(found, Unclear)
    assert found.candidates


def test_a_listing_that_is_not_read_to_its_end_proves_nothing() -> None:
    with talking_to(lambda request: answer({"data": [made(requests=9)], "has_more": True})) as (transport, _):
        found = transport.lookup(SentCreate(TOKEN, NOW, 3))
    assert isinstance(found, Unclear)
    assert not found.candidates
    with talking_to(lambda request: refused("404 No")) as (transport, _):
        found = transport.lookup(SentCreate(TOKEN, NOW, 3))
    assert isinstance(found, Unclear)
    assert not found.can_change


def test_the_state_of_a_batch_in_our_words() -> None:
    running = batch_snapshot(made())
    assert (running.status, running.requests_done, running.requests_total) == (BatchStatus.RUNNING, 0, 3)
    counts = {"processing": 0, "succeeded": 1, "errored": 1, "canceled": 0, "expired": 1}
    expired = batch_snapshot(ended(request_counts=counts))
    assert (expired.stopped, expired.requests_done, expired.requests_answered) == (Stopped.EXPIRED, 3, 1)
    assert batch_snapshot(made(cancel_initiated_at=NOW.isoformat())).stopped is Stopped.CANCELLED
    assert batch_snapshot(ended(results_url=None)).results_pending
    archived = batch_snapshot(ended(results_url=None, archived_at=NOW.isoformat()))
    assert not archived.results_pending
    assert not archived.result_refs
    assert batch_snapshot(made(processing_status="resting")).status is BatchStatus.UNKNOWN
    assert batch_snapshot(ended(request_counts={"succeeded": -1})).requests_total is None


def test_results_come_from_the_connections_own_host_whatever_the_batch_names(tmp_path: Path) -> None:
    def script(request: Request) -> bytes:
        if request.target.endswith("/results"):
            return answer(OURS, content_type="application/x-jsonl")
        return answer(ended(requests=2))

    with talking_to(script) as (transport, server):
        results = transport.results("msgbatch_1", {"output": "msgbatch_1"}, tmp_path, "r")
    assert server.paths()[-1] == "GET /v1/messages/batches/msgbatch_1/results"
    assert (results.files[0].size, results.expected_lines) == (len(OURS), 2)


def test_a_cut_download_is_never_taken_for_a_whole_one(tmp_path: Path) -> None:
    def script(request: Request) -> bytes:
        return cut(OURS[:-20], None) if request.target.endswith("/results") else answer(ended())

    with talking_to(script) as (transport, server):
        fault_from(
            lambda: transport.results("msgbatch_1", {"output": "msgbatch_1"}, tmp_path, "r"), ProviderUnavailable
        )
    assert len(server.paths()) == 4
    assert not list(tmp_path.iterdir())


def test_the_adapter_declares_what_the_documentation_says() -> None:
    assert (CAPABILITIES.stages_input, CAPABILITIES.can_prove_absence) == (False, False)
    assert (CAPABILITIES.most_requests, CAPABILITIES.most_bytes) == (100_000, 255_999_000)
    assert ADAPTER.token_factor("claude-opus-5") == 1.6
