"""The life of a message batch, as the real SDK sees it."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic.types.messages import MessageBatchSucceededResult

from practice_provider.anthropic_client import AnthropicClient, counts, request, requests
from practice_provider.client import Client, chat_lines
from practice_provider.conftest import StartAnthropic, StartSimulator


def test_a_batch_counts_nothing_before_its_end_and_always_all_of_its_requests(start_anthropic: StartAnthropic) -> None:
    client = start_anthropic(batch_s=0.8)
    batch = client.submit(requests(20))
    assert batch.expires_at - batch.created_at == timedelta(hours=24)
    assert (batch.processing_status, batch.ended_at, batch.results_url) == ("in_progress", None, None)
    seen = {"processing": 20}
    while batch.processing_status != "ended":
        assert counts(batch) == seen
        batch = client.batches.retrieve(batch.id)
        time.sleep(0.02)
    assert counts(batch) == {"succeeded": 20}
    assert batch.ended_at is not None
    assert batch.results_url == f"{client.simulator.control_url}/v1/messages/batches/{batch.id}/results"
    assert batch.archived_at is batch.cancel_initiated_at is None


def test_results_come_in_another_order_and_are_read_by_the_sdk(claude: AnthropicClient) -> None:
    batch = claude.run(requests(50))
    lines = list(claude.batches.results(batch.id))
    ids = [line.custom_id for line in lines]
    assert sorted(ids) == sorted(f"r-{number}" for number in range(50))
    assert ids != [f"r-{number}" for number in range(50)]
    for line in lines:
        assert isinstance(line.result, MessageBatchSucceededResult)
        message = line.result.message
        assert [block.text for block in message.content] == [line.custom_id.replace("r-", "document ")]
        assert (message.stop_reason, message.usage.service_tier) == ("end_turn", "batch")
        assert message.usage.input_tokens > 0


def test_parameters_are_not_checked_at_create_but_become_errored_lines(claude: AnthropicClient) -> None:
    asked = [request("good"), request("no-tokens", max_tokens=0), request("no-model", model="none-1")]
    asked.append({"custom_id": "empty", "params": {}})
    batch = claude.run(asked)
    assert counts(batch) == {"succeeded": 1, "errored": 3}
    got = claude.by_id(batch.id)
    assert got["good"]["type"] == "succeeded"
    for custom_id, kind in (("no-tokens", "invalid_request_error"), ("no-model", "not_found_error")):
        error = got[custom_id]["error"]
        assert (error["type"], error["error"]["type"]) == ("error", kind)
        assert error["request_id"].startswith("req_")
    assert got["empty"]["error"]["error"]["message"] == "model: Field required"
    books = claude.books()
    assert (books["executed"], books["failed"]) == (1, 3)  # errors are not billed


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        ([], "at least 1"),
        ([request("a"), request("a")], "not unique"),
        ([request("no spaces")], "custom_id"),
        ([request("x" * 65)], "custom_id"),
        ([{"custom_id": "a", "params": {}, "more": 1}], "extra"),
        ([{"custom_id": "a", "params": None}], "params"),
    ],
)
def test_a_create_is_refused_whole_for_its_frame(claude: AnthropicClient, asked: Any, where: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=where) as refused:
        claude.submit(asked)
    assert refused.value.type == "invalid_request_error"
    assert claude.batches.list().data == []


def test_too_many_requests_or_bytes_are_too_large_and_no_limit_is_named(start_anthropic: StartAnthropic) -> None:
    client = start_anthropic(anthropic={"requests_per_batch": 3, "bytes_per_batch": 5000})
    for asked in (requests(4), [request("a", "x" * 5000)]):
        with pytest.raises(anthropic.APIStatusError) as refused:
            client.submit(asked)
        assert (refused.value.status_code, refused.value.type) == (413, "request_too_large")
        assert not any(letter.isdigit() for letter in str(refused.value.body["error"]["message"]))  # type: ignore[index]
    assert counts(client.run(requests(3))) == {"succeeded": 3}


def test_batches_are_listed_newest_first_in_pages_both_ways(claude: AnthropicClient) -> None:
    made = [claude.submit(requests(1)).id for _ in range(5)]
    newest = made[::-1]
    first = claude.batches.list(limit=2)
    assert [one.id for one in first.data] == newest[:2]
    assert (first.has_more, first.first_id, first.last_id) == (True, newest[0], newest[1])
    second = claude.batches.list(limit=2, after_id=newest[1])
    assert [one.id for one in second.data] == newest[2:4]
    last = claude.batches.list(limit=2, after_id=newest[3])
    assert ([one.id for one in last.data], last.has_more) == (newest[4:], False)
    before = claude.batches.list(limit=2, before_id=newest[3])
    assert ([one.id for one in before.data], before.has_more) == (newest[1:3], True)
    assert [one.id for one in claude.batches.list(limit=2)] == newest  # the SDK follows the pages
    for limit in (0, 1001):
        with pytest.raises(anthropic.BadRequestError):
            claude.batches.list(limit=limit)


def test_a_canceled_batch_keeps_its_finished_requests(start_anthropic: StartAnthropic) -> None:
    client = start_anthropic(cancel_s=0.2)
    client.faults(hold=True, hold_after=3)
    batch = client.submit(requests(10))
    client.wait_for_executions(3)
    canceling = client.batches.cancel(batch.id)
    assert (canceling.processing_status, counts(canceling)) == ("canceling", {"processing": 10})
    assert client.batches.cancel(batch.id).processing_status == "canceling"
    ended = client.wait(batch.id)
    assert ended.cancel_initiated_at is not None
    assert counts(ended) == {"succeeded": 3, "canceled": 7}
    kinds = [result["type"] for result in client.by_id(batch.id).values()]
    assert (kinds.count("succeeded"), kinds.count("canceled")) == (3, 7)
    assert client.books()["executed"] == 3
    with pytest.raises(anthropic.BadRequestError):
        client.batches.cancel(batch.id)


def test_a_batch_canceled_at_once_still_accounts_for_each_request(start_anthropic: StartAnthropic) -> None:
    client = start_anthropic(batch_s=30)
    batch = client.submit(requests(4))
    client.batches.cancel(batch.id)
    assert counts(client.wait(batch.id)) == {"canceled": 4}
    assert client.by_id(batch.id) == {f"r-{number}": {"type": "canceled"} for number in range(4)}


def test_an_expired_batch_has_what_was_finished(start_anthropic: StartAnthropic) -> None:
    client = start_anthropic(completion_window_s=0.8)
    client.faults(hold=True, hold_after=4)
    batch = client.wait(client.submit(requests(10)).id)
    assert counts(batch) == {"succeeded": 4, "expired": 6}
    assert sum(result == {"type": "expired"} for result in client.by_id(batch.id).values()) == 6


def test_results_are_missing_before_the_end_and_after_the_archiving(start_anthropic: StartAnthropic) -> None:
    client = start_anthropic(anthropic={"archive_s": 1.5})
    client.faults(hold=True)
    batch = client.submit(requests(1))
    with pytest.raises(anthropic.AnthropicError, match="results_url"):
        client.batches.results(batch.id)
    assert client.http.get(f"/v1/messages/batches/{batch.id}/results").status_code == 404
    client.faults()
    client.wait(batch.id)
    assert len(client.results(batch.id)) == 1
    time.sleep(max(0.0, batch.created_at.timestamp() + 1.6 - time.time()))
    archived = client.batches.retrieve(batch.id)
    assert archived.archived_at == batch.created_at + timedelta(seconds=1.5)
    assert (archived.results_url, counts(archived)) == (None, {"succeeded": 1})
    assert client.http.get(f"/v1/messages/batches/{batch.id}/results").status_code == 404


def test_only_an_ended_batch_can_be_deleted(claude: AnthropicClient) -> None:
    claude.faults(hold=True)
    batch = claude.submit(requests(1))
    with pytest.raises(anthropic.BadRequestError, match="cancel it"):
        claude.batches.delete(batch.id)
    claude.faults()
    claude.wait(batch.id)
    assert claude.batches.delete(batch.id).type == "message_batch_deleted"
    with pytest.raises(anthropic.NotFoundError):
        claude.batches.retrieve(batch.id)
    assert claude.batches.list().data == []


def test_the_queue_is_limited_in_requests_over_all_batches(start_anthropic: StartAnthropic) -> None:
    client = start_anthropic(anthropic={"queued_requests": 10, "retry_after_s": 7})
    client.faults(hold=True)
    first = client.submit(requests(6))
    with pytest.raises(anthropic.RateLimitError) as refused:
        client.submit(requests(5))
    assert refused.value.response.headers["retry-after"] == "7"
    assert refused.value.type == "rate_limit_error"
    client.submit(requests(4))
    client.faults()
    client.wait(first.id)
    client.submit(requests(5))
    assert client.books()["calls"]["POST /v1/messages/batches"] == 4


def test_a_workspace_sees_its_own_batches_and_answers_name_it(start_anthropic: StartAnthropic) -> None:
    keys = {"one": ["wrkspc_1"], "two": ["wrkspc_2"], "both": ["wrkspc_1", "wrkspc_2"]}
    client = start_anthropic(client_key="one", api_key="other", anthropic={"workspaces": keys})
    other = AnthropicClient(client.simulator, "two")
    both = AnthropicClient(client.simulator, "both")
    try:
        batch = client.submit(requests(1))
        assert batch._workspace_id == "wrkspc_1"  # the SDK's only place for it
        assert batch._request_id.startswith("req_")  # type: ignore[union-attr]
        assert other.batches.list().data == []
        with pytest.raises(anthropic.NotFoundError):
            other.batches.retrieve(batch.id)
        with pytest.raises(anthropic.PermissionDeniedError):
            other.batches.list(extra_headers={"anthropic-workspace-id": "wrkspc_1"})
        with pytest.raises(anthropic.BadRequestError, match="anthropic-workspace-id"):
            both.batches.list()
        assert both.batches.retrieve(batch.id, workspace_id="wrkspc_1").id == batch.id
    finally:
        other.close()
        both.close()


def test_a_wrong_key_or_no_version_is_refused_in_anthropic_terms(start_anthropic: StartAnthropic) -> None:
    client = start_anthropic(api_key="right", client_key="wrong")
    with pytest.raises(anthropic.AuthenticationError) as refused:
        client.batches.list()
    assert refused.value.type == "authentication_error"
    assert refused.value.body["request_id"] == refused.value.request_id  # type: ignore[index]
    answer = client.http.get("/v1/messages/batches", headers={"anthropic-version": "", "x-api-key": "right"})
    assert answer.status_code == 200
    del client.http.headers["anthropic-version"]
    answer = client.http.get("/v1/messages/batches", headers={"x-api-key": "right"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_both_vendors_live_on_one_port_and_see_only_their_own(start: StartSimulator) -> None:
    openai_client: Client = start()
    claude = AnthropicClient(openai_client.simulator)
    try:
        ours, theirs = claude.run(requests(2)), openai_client.run(chat_lines(2))
        assert [one.id for one in claude.batches.list().data] == [ours.id]
        assert [one.id for one in openai_client.sdk.batches.list().data] == [theirs.id]
        assert openai_client.http.get(f"/v1/batches/{ours.id}").status_code == 404
        with pytest.raises(anthropic.NotFoundError):
            claude.batches.retrieve(theirs.id)
        assert claude.sdk.models.retrieve("echo-1").display_name == "echo-1"
        assert "embed-1" not in {one.id for one in claude.sdk.models.list()}
        assert openai_client.sdk.models.retrieve("echo-1").object == "model"
        assert openai_client.http.get("/v1/files").json()["data"][-1]["purpose"] == "batch"
        assert claude.http.get("/v1/unknown").json()["error"]["type"] == "not_found_error"
        assert claude.books()["executed"] == 4
    finally:
        claude.close()


def test_a_killed_simulator_goes_on_with_a_message_batch(tmp_path: Path, start_anthropic: StartAnthropic) -> None:
    data_dir = tmp_path / "data"
    client = start_anthropic(data_dir=data_dir)
    client.faults(hold=True, hold_after=3)
    batch = client.submit(requests(6))
    client.wait_for_executions(3)
    client.simulator.stop()
    client = start_anthropic(data_dir=data_dir)
    client.faults()
    assert counts(client.wait(batch.id)) == {"succeeded": 6}
    assert len(client.by_id(batch.id)) == 6
    assert (client.books()["executed"], client.books()["duplicates"]) == (6, [])
