from __future__ import annotations

import hashlib
import json
import threading
import time

import openai
import pytest

from practice_provider.client import Client, chat_line, chat_lines, jsonl


def test_the_books_hold_every_executed_request(fast: Client) -> None:
    batch = fast.run([chat_line("a", "hello world"), chat_line("b", "other")])
    books = fast.books()
    assert books["executed"] == 2
    assert books["requests"].keys() == {"a", "b"}
    entry = books["requests"]["a"]
    assert entry["count"] == 1
    [execution] = entry["executions"]
    messages = [{"content": "hello world", "role": "user"}]
    assert execution["body_sha256"] == hashlib.sha256(json.dumps(messages, separators=(",", ":")).encode()).hexdigest()
    assert (execution["batch_id"], execution["model"], execution["status"]) == (batch.id, "echo-1", 200)
    assert execution["prompt_tokens"] > 0
    assert books["batches"][0]["executed"] == 2
    assert batch.usage is not None
    assert books["usage"]["prompt_tokens"] == batch.usage.input_tokens
    assert "requests" not in fast.books(summary=True)
    assert fast.simulator.books() == fast.books()


def test_a_document_executed_twice_shows_although_its_custom_id_differs(fast: Client) -> None:
    fast.run([chat_line("round-1", "same"), chat_line("other", "different")])
    assert fast.books()["duplicates"] == []
    fast.run([chat_line("round-2", "same")])
    [duplicate] = fast.books()["duplicates"]
    assert (duplicate["count"], sorted(duplicate["custom_ids"])) == (2, ["round-1", "round-2"])


def test_calls_are_counted_per_route_and_method(fast: Client) -> None:
    batch = fast.run(chat_lines(1))
    fast.sdk.batches.list()
    calls = fast.books(summary=True)["calls"]
    assert calls["POST /v1/files"] == calls["POST /v1/batches"] == calls["GET /v1/batches"] == 1
    before = calls["GET /v1/batches/{batch_id}"]
    fast.sdk.batches.retrieve(batch.id)
    assert fast.books(summary=True)["calls"]["GET /v1/batches/{batch_id}"] == before + 1


def test_a_dropped_create_reply_leaves_one_accepted_batch(fast: Client) -> None:
    fast.faults(drop_create_reply=1)
    file_id = fast.upload(jsonl(chat_lines(2)))
    with pytest.raises(openai.APIConnectionError):
        fast.create(file_id, metadata={"token": "t-1"})
    [batch] = fast.sdk.batches.list().data
    assert (batch.input_file_id, batch.metadata) == (file_id, {"token": "t-1"})
    assert fast.wait(batch.id).status == "completed"
    assert fast.books()["executed"] == 2
    assert [entry["fault"] for entry in fast.fault_log()] == ["drop_create_reply"]
    assert fast.create(file_id).status == "validating"


def test_a_create_can_fail_after_it_was_accepted(fast: Client) -> None:
    fast.faults(fail_create_after_accept=1)
    with pytest.raises(openai.InternalServerError):
        fast.submit(chat_lines(1))
    assert len(fast.sdk.batches.list().data) == 1


def test_a_line_fails_as_often_as_the_plan_says_whatever_its_custom_id(fast: Client) -> None:
    error = {"match": "^bad-", "status": 429, "code": "rate_limit_exceeded", "type": "requests", "times": 2}
    fast.faults(line_error=error)
    statuses = []
    for number in range(3):
        batch = fast.run([chat_line(f"bad-{number}", "the same"), chat_line(f"good-{number}", f"text {number}")])
        if batch.error_file_id is None:
            statuses.append(200)
            continue
        [line] = fast.result_lines(batch.error_file_id)
        assert line["response"]["body"]["error"]["code"] == "rate_limit_exceeded"
        statuses.append(line["response"]["status_code"])
    assert statuses == [429, 429, 200]
    books = fast.books()
    assert (books["executed"], books["failed"], books["duplicates"]) == (4, 2, [])
    assert len(fast.fault_log()) == 2


def test_a_line_can_fail_without_a_response(fast: Client) -> None:
    fast.faults(line_error={"status": None, "code": "request_timeout", "message": "too slow"})
    [line] = fast.result_lines(fast.run(chat_lines(1)).error_file_id)
    assert line["response"] is None
    assert line["error"] == {"code": "request_timeout", "message": "too slow"}


def test_a_rate_of_lines_fails_and_the_same_ones_again(fast: Client) -> None:
    fast.faults(line_error={"rate": 0.3, "seed": 7, "times": None})
    failed = [{line["custom_id"] for line in fast.result_lines(fast.run(chat_lines(200)).error_file_id)} for _ in "ab"]
    assert failed[0] == failed[1]
    assert 30 < len(failed[0]) < 90


def test_a_slow_download_arrives_whole_and_late(fast: Client) -> None:
    batch = fast.run(chat_lines(20))
    size = fast.sdk.files.retrieve(batch.output_file_id or "").bytes
    fast.faults(slow_content_ms=20, content_chunk_bytes=size // 10, content_delay_s=0.1)
    start = time.monotonic()
    response = fast.sdk.files.content(batch.output_file_id or "")
    assert len(response.read()) == size
    assert response.response.headers["content-length"] == str(size)
    assert time.monotonic() - start > 0.25


def test_a_delayed_create_is_accepted_before_its_answer_leaves(fast: Client) -> None:
    fast.faults(create_delay_s=0.5)
    file_id = fast.upload(jsonl(chat_lines(1)))
    thread = threading.Thread(target=fast.create, args=[file_id])
    thread.start()
    deadline = time.monotonic() + 5
    while not fast.sdk.batches.list().data and time.monotonic() < deadline:
        time.sleep(0.01)
    answered_first = not thread.is_alive()
    thread.join()
    assert not answered_first
    assert len(fast.sdk.batches.list().data) == 1


def test_an_unknown_fault_is_refused(fast: Client) -> None:
    assert fast.http.post("/_faults", json={"no_such_fault": 1}).status_code == 400
