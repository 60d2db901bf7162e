from __future__ import annotations

import json
import time
from typing import Any

import openai
import pytest

from practice_provider.client import Client, chat_line, chat_lines, jsonl
from practice_provider.conftest import StartSimulator


def test_a_batch_goes_through_its_states_with_timestamps_and_counts(start: StartSimulator) -> None:
    client = start(batch_s=1.5)
    batch = client.submit(chat_lines(40))
    assert batch.status == "validating"
    assert batch.expires_at == batch.created_at + 24 * 3600
    seen, counts = ["validating"], [0]
    while seen[-1] != "completed":
        batch = client.sdk.batches.retrieve(batch.id)
        assert batch.request_counts is not None
        counts.append(batch.request_counts.completed)
        if batch.status != seen[-1]:
            seen.append(batch.status)
        time.sleep(0.01)
    assert seen == ["validating", "in_progress", "finalizing", "completed"]
    assert counts == sorted(counts)
    assert len({*counts}) > 5
    times = [batch.created_at, batch.in_progress_at, batch.finalizing_at, batch.completed_at]
    assert times == sorted(time for time in times if time is not None)
    assert batch.usage is not None
    assert batch.usage.total_tokens == batch.usage.input_tokens + batch.usage.output_tokens > 0
    assert batch.model == "echo-1"


def test_a_batch_runs_although_nobody_polls(start: StartSimulator) -> None:
    client = start(batch_s=0.3)
    batch = client.submit(chat_lines(5))
    time.sleep(1.0)
    assert client.simulator.books()["executed"] == 5
    assert client.sdk.batches.retrieve(batch.id).status == "completed"


def test_output_lines_have_the_documented_shape_in_another_order(fast: Client) -> None:
    batch = fast.run(chat_lines(50))
    assert batch.error_file_id is None
    lines = fast.result_lines(batch.output_file_id)
    ids = [line["custom_id"] for line in lines]
    assert sorted(ids) == sorted(f"r-{number}" for number in range(50))
    assert ids != [f"r-{number}" for number in range(50)]
    line = lines[0]
    assert set(line) == {"id", "custom_id", "response", "error"}
    assert line["error"] is None
    assert line["response"]["status_code"] == 200
    assert line["response"]["request_id"].startswith("req_")
    assert line["response"]["body"]["object"] == "chat.completion"
    assert len({line["id"] for line in lines}) == 50
    output = fast.sdk.files.retrieve(batch.output_file_id or "")
    assert output.purpose == "batch_output"


def test_lines_that_fail_go_to_the_error_file_and_no_success_means_no_output_file(fast: Client) -> None:
    body = {"model": "echo-1"}
    lines = [{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body}]
    batch = fast.run(lines)
    assert batch.status == "completed"
    assert batch.output_file_id is None
    assert batch.request_counts is not None
    assert (batch.request_counts.completed, batch.request_counts.failed) == (0, 1)
    [line] = fast.result_lines(batch.error_file_id)
    assert line["response"]["status_code"] == 400
    assert line["response"]["body"]["error"]["param"] == "messages"


def test_embeddings_run_as_a_batch(fast: Client) -> None:
    body = {"model": "embed-1", "input": ["one", "two"], "dimensions": 8}
    lines = [{"custom_id": "a", "method": "POST", "url": "/v1/embeddings", "body": body}]
    batch = fast.run(lines, "/v1/embeddings")
    [line] = fast.result_lines(batch.output_file_id)
    vectors = [one["embedding"] for one in line["response"]["body"]["data"]]
    assert [len(vector) for vector in vectors] == [8, 8]


def test_batches_are_listed_newest_first_in_pages(fast: Client) -> None:
    file_id = fast.upload(jsonl(chat_lines(1)))
    made = [fast.create(file_id, metadata={"n": str(number)}).id for number in range(5)]
    first = fast.sdk.batches.list(limit=2)
    assert ([batch.id for batch in first.data], first.has_more) == ([made[4], made[3]], True)
    raw = fast.http.get("/v1/batches", params={"limit": 2, "after": made[3]}).json()
    assert (raw["first_id"], raw["last_id"], raw["has_more"]) == (made[2], made[1], True)
    last = fast.sdk.batches.list(limit=2, after=made[1])
    assert ([batch.id for batch in last.data], last.has_more) == ([made[0]], False)
    assert [batch.id for batch in fast.sdk.batches.list(limit=2)] == made[::-1]


def test_a_cancelled_batch_keeps_its_finished_lines(start: StartSimulator) -> None:
    client = start(cancel_s=0.2)
    client.faults(hold=True, hold_after=3)
    batch = client.submit(chat_lines(10))
    client.wait_for_lines(batch.id, 3)
    assert client.sdk.batches.cancel(batch.id).status == "cancelling"
    assert client.sdk.batches.cancel(batch.id).status == "cancelling"
    batch = client.wait(batch.id)
    assert batch.status == "cancelled"
    assert batch.cancelling_at is not None
    assert batch.cancelled_at is not None
    done = {line["custom_id"] for line in client.result_lines(batch.output_file_id)}
    unfinished = client.result_lines(batch.error_file_id)
    assert len(done) == 3
    assert {line["error"]["code"] for line in unfinished} == {"batch_cancelled"}
    assert done | {line["custom_id"] for line in unfinished} == {f"r-{number}" for number in range(10)}
    assert client.books()["executed"] == 3


def test_cancelling_an_ended_batch_is_a_conflict(fast: Client) -> None:
    batch = fast.run(chat_lines(1))
    with pytest.raises(openai.ConflictError, match="completed"):
        fast.sdk.batches.cancel(batch.id)


def test_an_expired_batch_has_both_files(start: StartSimulator) -> None:
    client = start(completion_window_s=0.8)
    client.faults(hold=True, hold_after=4)
    batch = client.wait(client.submit(chat_lines(10)).id)
    assert (batch.status, batch.expired_at is not None) == ("expired", True)
    assert len(client.result_lines(batch.output_file_id)) == 4
    lines = client.result_lines(batch.error_file_id)
    assert len(lines) == 6
    assert all(line["response"] is None and line["error"]["code"] == "batch_expired" for line in lines)


def test_a_held_batch_stays_in_progress_until_it_is_released(fast: Client) -> None:
    fast.faults(hold=True)
    batch = fast.submit(chat_lines(2))
    fast.wait_for_lines(batch.id, 2)
    time.sleep(0.2)
    assert fast.sdk.batches.retrieve(batch.id).status == "in_progress"
    fast.http.patch("/_faults", json={"hold": False}).raise_for_status()
    assert fast.wait(batch.id).status == "completed"


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ({f"k{number}": "v" for number in range(17)}, "object_above_max_properties"),
        ({"k" * 65: "v"}, "string_above_max_length"),
        ({"k": "v" * 513}, "string_above_max_length"),
        ({"k": 5}, "invalid_type"),
    ],
)
def test_metadata_over_its_limits_is_refused(fast: Client, metadata: Any, code: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        fast.submit(chat_lines(1), metadata=metadata)
    assert refused.value.code == code


def test_metadata_at_its_limits_comes_back(fast: Client) -> None:
    metadata = {f"{number:064d}": "v" * 512 for number in range(16)}
    batch = fast.submit(chat_lines(1), metadata=metadata)
    assert fast.sdk.batches.retrieve(batch.id).metadata == metadata


def test_a_create_that_cannot_work_is_refused(fast: Client) -> None:
    file_id = fast.upload(jsonl(chat_lines(1)))
    with pytest.raises(openai.NotFoundError):
        fast.create("file-none")
    with pytest.raises(openai.BadRequestError) as refused:
        fast.create(file_id, "/v1/nothing")
    assert refused.value.param == "endpoint"
    with pytest.raises(openai.BadRequestError) as refused:
        fast.sdk.batches.create(input_file_id=file_id, endpoint="/v1/embeddings", completion_window="7d")  # type: ignore[arg-type]
    assert refused.value.param == "completion_window"
    done = fast.run(chat_lines(1))
    with pytest.raises(openai.BadRequestError):
        fast.create(done.output_file_id or "")
    with pytest.raises(openai.NotFoundError):
        fast.sdk.batches.retrieve("batch_none")
    assert len(fast.sdk.batches.list().data) == 1


def test_a_wrong_key_is_refused_in_openai_terms(start: StartSimulator) -> None:
    client = start(api_key="right", client_key="wrong")
    with pytest.raises(openai.AuthenticationError) as refused:
        client.sdk.batches.list()
    assert refused.value.code == "invalid_api_key"
    assert "wrong" not in json.dumps(refused.value.body)


def test_an_unknown_address_answers_404_with_an_error_body(fast: Client) -> None:
    answer = fast.http.get("/v1/unknown")
    assert answer.status_code == 404
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_lines_keep_text_with_unicode_line_breaks(fast: Client) -> None:
    text = "one\u2028two\u2029three\u0085four\x0bfive\u0000six"
    batch = fast.run([chat_line("a", text)])
    [line] = fast.result_lines(batch.output_file_id)
    assert line["response"]["body"]["choices"][0]["message"]["content"] == text
