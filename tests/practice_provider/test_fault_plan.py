"""Every fault of the plan: what it does to whom, and what the log says about it."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import openai
import pytest

from dev.practice_provider.odd_answers import SPOILING, Odd
from dev.practice_provider.vendors.openai.odd_lines import ODD_KINDS
from practice_provider.client import Client, chat_line, chat_lines, jsonl
from practice_provider.conftest import StartSimulator


def answered(client: Client, kind: Odd) -> tuple[bytes, bytes]:
    """The raw result files of two lines of which the first one comes back oddly."""
    client.faults(answer={"kind": kind, "match": "^odd$"})
    batch = client.run([chat_line("odd", "first"), chat_line("plain", "second")])
    files = (batch.output_file_id, batch.error_file_id)
    output, errors = (client.sdk.files.content(one).read() if one else b"" for one in files)
    return output, errors


@pytest.mark.parametrize("kind", sorted(ODD_KINDS))
def test_an_odd_answer_is_executed_logged_by_custom_id_and_leaves_other_lines_alone(fast: Client, kind: Odd) -> None:
    output, _ = answered(fast, kind)
    assert b'"custom_id":"plain"' in output
    [entry] = fast.fault_log()
    assert entry["fault"] == "answer"
    assert {name: entry["detail"][name] for name in ("custom_id", "kind", "executed", "spoilt")} == {
        "custom_id": "odd",
        "kind": kind.value,
        "executed": True,
        "spoilt": kind in SPOILING,
    }
    books = fast.books()
    assert (books["executed"], books["failed"]) == (2, 0)

    fast.run([chat_line("odd", "first")])  # the same body is spared the second time
    assert len(fast.fault_log()) == 1


def lines_in(data: bytes) -> list[str]:
    return [json.loads(line)["custom_id"] for line in data.split(b"\n") if line]


def test_lines_are_lost_doubled_and_made_up(fast: Client) -> None:
    assert lines_in(answered(fast, Odd.LOST)[0]) == ["plain"]
    assert Counter(lines_in(answered(fast, Odd.DOUBLED)[0])) == {"odd": 2, "plain": 1}
    assert Counter(lines_in(answered(fast, Odd.FOREIGN)[0])) == {"foreign-odd": 1, "odd": 1, "plain": 1}
    output, errors = answered(fast, Odd.BOTH_FILES)
    assert sorted(lines_in(output)) == ["odd", "plain"]
    assert lines_in(errors) == ["odd"]


def test_a_rate_of_answers_is_odd_and_the_log_tells_which(fast: Client) -> None:
    fast.faults(answer=[{"kind": "lost", "rate": 0.2, "seed": 3}])
    batch = fast.run(chat_lines(200))
    assert batch.request_counts is not None
    assert batch.request_counts.completed == 200  # as real ones do, it counts what it lost
    got = {line["custom_id"] for line in fast.result_lines(batch.output_file_id)}
    lost = {entry["detail"]["custom_id"] for entry in fast.fault_log()}
    assert got | lost == {f"r-{number}" for number in range(200)}
    assert not got & lost
    assert 20 < len(lost) < 60


def test_requests_whose_text_holds_a_word_are_answered_worse_and_the_others_as_before(fast: Client) -> None:
    fast.faults(answer=[{"kind": "degraded", "text": r"\bumbrella\b", "times": None}])
    lines = [chat_line("one", "for acme only"), chat_line("two", "for umbrella only")]
    said = {
        line["custom_id"]: line["response"]["body"]["choices"][0]["message"]["content"]
        for line in fast.result_lines(fast.run(lines).output_file_id)
    }
    assert said == {"one": "for acme only", "two": "for umbrella"}


def test_a_call_fails_as_often_as_the_plan_says_and_nothing_else_does(fast: Client) -> None:
    route = "GET /v1/batches/{batch_id}"
    fast.faults(
        call={"route": route, "after": 1, "times": 2, "status": 429, "headers": {"retry-after": "300"}, "code": "slow"}
    )
    batch = fast.submit(chat_lines(1))
    outcomes: list[Any] = []
    for _ in range(4):
        try:
            outcomes.append(fast.sdk.batches.retrieve(batch.id).id)
        except openai.RateLimitError as error:
            outcomes.append((error.response.headers["retry-after"], error.code))
    assert outcomes == [batch.id, ("300", "slow"), ("300", "slow"), batch.id]
    assert [entry["detail"]["route"] for entry in fast.fault_log()] == [route, route]


def test_a_call_can_meet_a_page_or_a_closed_connection(fast: Client) -> None:
    fast.faults(
        call=[
            {"route": "GET /v1/batches", "status": 200, "html": True},
            {"route": "GET /v1/files", "status": None},
        ]
    )
    page = fast.sdk.batches.with_raw_response.list().http_response
    assert page.headers["content-type"].startswith("text/html")
    with pytest.raises(openai.APIConnectionError):
        fast.sdk.files.list()


def test_the_next_batch_expires_half_way_with_its_unexecuted_lines_in_the_log(fast: Client) -> None:
    fast.faults(expire_next=1)
    batch = fast.run(chat_lines(10))
    assert batch.status == "expired"
    assert len(fast.result_lines(batch.output_file_id)) == 5
    errors = {line["custom_id"] for line in fast.result_lines(batch.error_file_id)}
    assert {entry["detail"]["custom_id"] for entry in fast.fault_log()} == errors
    assert fast.books()["executed"] == 5
    assert fast.run(chat_lines(10)).status == "completed"


@pytest.mark.parametrize(
    ("fault", "lines"),
    [
        ({"code": "token_limit_exceeded"}, [None]),
        ({"code": "content_filter", "match": "document 1"}, [None]),
        ({"code": "invalid_value", "match": "document [12]", "named": True}, [2, 3]),
    ],
)
def test_a_good_file_is_refused_with_or_without_the_lines_that_are_to_blame(
    fast: Client, fault: dict[str, Any], lines: list[int | None]
) -> None:
    fast.faults(refuse_file=fault)
    batch = fast.run(chat_lines(3))
    assert batch.status == "failed"
    assert batch.errors is not None
    assert [(problem.code, problem.line) for problem in batch.errors.data or ()] == [(fault["code"], n) for n in lines]
    assert fast.run(chat_lines(3)).status == "completed"
    assert fast.books()["executed"] == 3


def test_a_download_stops_half_way_with_and_without_saying_so(fast: Client) -> None:
    file_id = fast.run(chat_lines(20)).output_file_id or ""
    whole = fast.sdk.files.content(file_id).read()
    fast.faults(cut_content=1, cut_content_unannounced=1)
    with pytest.raises((openai.APIConnectionError, httpx2.HTTPError)):
        fast.sdk.files.content(file_id).read()
    half = fast.sdk.files.content(file_id)
    assert "content-length" not in half.response.headers
    assert whole.startswith(half.read())
    assert fast.sdk.files.content(file_id).read() == whole


def test_a_batch_object_can_hide_its_files_lie_about_its_counts_and_end_with_an_empty_error_file(fast: Client) -> None:
    fast.faults(counts_lie=True, empty_error_files=True, line_error={"match": "r-0", "times": None})
    failed = fast.run(chat_lines(2))
    assert failed.request_counts is not None
    assert (failed.request_counts.completed, failed.request_counts.failed) == (2, 0)
    fast.faults(empty_error_files=True)
    batch = fast.run(chat_lines(2))
    assert fast.sdk.files.content(batch.error_file_id or "").read() == b""
    fast.faults(hide_files=1)
    assert fast.sdk.batches.retrieve(batch.id).output_file_id is None
    assert fast.sdk.batches.retrieve(batch.id).output_file_id == batch.output_file_id


@pytest.mark.parametrize("stuck", ["validating", "finalizing", "cancelling"])
def test_a_batch_stays_where_the_plan_holds_it(start: StartSimulator, stuck: str) -> None:
    client = start()
    client.faults(stuck=stuck, hold=stuck == "cancelling")
    batch = client.submit(jsonl(chat_lines(1)))
    if stuck == "cancelling":
        client.sdk.batches.cancel(batch.id)
    client.wait(batch.id, stuck)
    client.faults()
    assert client.wait(batch.id).status == ("cancelled" if stuck == "cancelling" else "completed")


def test_an_unfinished_batch_shows_the_word_that_the_plan_gives(fast: Client) -> None:
    fast.faults(hold=True, status_shown="paused")
    batch = fast.submit(chat_lines(1))
    assert fast.sdk.batches.retrieve(batch.id).status == "paused"
    assert [one.status for one in fast.sdk.batches.list().data] == ["paused"]
    fast.faults()
    fast.wait(batch.id, "completed")


def test_a_request_that_goes_on_after_a_rejected_answer_is_the_same_to_a_fault(fast: Client) -> None:
    fast.faults(answer={"kind": "prose"})
    asked = {"role": "user", "content": "a document"}
    fast.run([chat_line("first", messages=[asked])])
    repair = [asked, {"role": "assistant", "content": "no JSON"}, {"role": "user", "content": "again"}]
    fast.run([chat_line("repair", messages=repair), chat_line("other", messages=[{**asked, "content": "another"}])])
    assert [entry["detail"]["custom_id"] for entry in fast.fault_log()] == ["first", "other"]


def test_an_output_file_can_grow_be_empty_or_an_error_after_its_batch_has_ended(fast: Client) -> None:
    batch = fast.run(chat_lines(8))
    name = batch.output_file_id or ""
    whole = fast.sdk.files.content(name).read()
    fast.faults(short_content={"kind": "growing", "times": 2})
    assert fast.sdk.files.retrieve(name).bytes == 0
    seen = [fast.sdk.files.content(name).read() for _ in range(3)]
    assert seen[0] == b""
    assert 0 < len(seen[1].splitlines()) < 8
    assert whole.startswith(seen[1])
    assert seen[2] == whole
    fast.faults(short_content={"kind": "empty", "times": 1})
    assert [fast.sdk.files.content(name).read() for _ in range(2)] == [b"", whole]
    fast.faults(short_content={"kind": "error", "times": 1})
    assert json.loads(fast.sdk.files.content(name).read())["error"]["message"] == "The file is not ready yet."
    assert fast.sdk.files.retrieve(name).bytes == len(whole)
    assert len([one for one in fast.fault_log() if one["fault"] == "short_content"]) == 4


def test_counts_can_come_late_and_the_total_can_be_wrong(fast: Client) -> None:
    batch = fast.run(chat_lines(2))
    fast.faults(hide_counts=1, total_off=3)
    seen = [fast.sdk.batches.retrieve(batch.id).request_counts for _ in range(2)]
    assert [one.total for one in seen if one is not None] == [0, 5]


def test_a_listing_can_run_the_other_way_hide_ours_repeat_itself_and_hold_other_peoples_batches(fast: Client) -> None:
    ours = [fast.run(chat_lines(1)).id for _ in range(2)]
    fast.faults(listing={"order": "oldest first", "before": 3, "after": 1})
    listed = [one.id for one in fast.sdk.batches.list(limit=4)]  # the SDK follows every page
    assert [one for one in listed if one in ours] == ours
    assert (len(listed), listed.index(ours[0])) == (6, 3)
    fast.faults(listing={"hidden": True, "before": 1})
    assert [one.id for one in fast.sdk.batches.list()] == ["batch_other000000"]
    fast.faults(listing={"repeating": True})
    first = fast.sdk.batches.list()
    assert [one.id for one in first.data] == [one.id for one in fast.sdk.batches.list(after=ours[0]).data]


def test_a_clock_that_is_behind_shows_in_batches_files_and_headers(fast: Client) -> None:
    batch = fast.run(chat_lines(1))
    fast.faults(clock_behind_s=3600)
    assert fast.sdk.batches.retrieve(batch.id).created_at == batch.created_at - 3600
    answer = fast.sdk.files.with_raw_response.retrieve(batch.output_file_id or "")
    apart = datetime.now(UTC) - parsedate_to_datetime(answer.http_response.headers["date"])
    assert 3590 < apart.total_seconds() < 3660
