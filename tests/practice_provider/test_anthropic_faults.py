"""The fault board as a client of Anthropic meets it."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import anthropic
import httpx
import pytest

from dev.practice_provider.odd_answers import SPOILING, Odd
from dev.practice_provider.vendors.anthropic.odd_lines import ODD_KINDS
from practice_provider.anthropic_client import AnthropicClient, counts, request, requests

CREATE = "POST /v1/messages/batches"
RETRIEVE = "GET /v1/messages/batches/{batch_id}"


def odd_results(client: AnthropicClient, kind: Odd, text: str = "first") -> bytes:
    """The raw results of two requests of which the first one comes back oddly."""
    client.faults(answer={"kind": kind, "match": "^odd$"})
    return client.raw_results(client.run([request("odd", text), request("plain", "second")]).id)


def odd_result(client: AnthropicClient, kind: Odd, text: str = "first words of it") -> dict[str, Any]:
    lines = [json.loads(line) for line in odd_results(client, kind, text).split(b"\n") if line]
    return next(dict(line["result"]) for line in lines if line["custom_id"] == "odd")


@pytest.mark.parametrize("kind", sorted(ODD_KINDS))
def test_an_odd_answer_is_executed_logged_and_leaves_other_lines_alone(claude: AnthropicClient, kind: Odd) -> None:
    assert b'"custom_id":"plain"' in odd_results(claude, kind)
    [entry] = claude.fault_log()
    detail = entry["detail"]
    assert (entry["fault"], detail["custom_id"], detail["kind"]) == ("answer", "odd", kind.value)
    assert (detail["executed"], detail["spoilt"]) == (True, kind in SPOILING)
    assert (claude.books()["executed"], claude.books()["failed"]) == (2, 0)
    claude.run([request("odd", "first")])  # the same request is spared the second time
    assert len(claude.fault_log()) == 1


def test_a_kind_that_this_vendor_cannot_give_passes_its_lines_by(claude: AnthropicClient) -> None:
    assert odd_result(claude, Odd.STRING_BODY)["message"]["content"][0]["text"] == "first words of it"
    assert claude.fault_log() == []


def test_lines_are_lost_doubled_and_made_up_and_the_counts_tell(claude: AnthropicClient) -> None:
    def ids(kind: Odd) -> Counter[str]:
        return Counter(json.loads(line)["custom_id"] for line in odd_results(claude, kind).split(b"\n") if line)

    assert ids(Odd.LOST) == {"plain": 1}
    assert ids(Odd.DOUBLED) == {"odd": 2, "plain": 1}
    assert ids(Odd.FOREIGN) == {"foreign-odd": 1, "odd": 1, "plain": 1}
    claude.faults(answer={"kind": "lost"})
    assert counts(claude.run([request("new", "other text")])) == {"succeeded": 1}


def test_each_end_of_an_answer_has_its_reason(claude: AnthropicClient) -> None:
    reasons = {
        Odd.TRUNCATED: "max_tokens",
        Odd.MAX_TOKENS: "max_tokens",
        Odd.MODEL_LENGTH: "model_context_window_exceeded",
        Odd.PAUSED: "pause_turn",
        Odd.REFUSAL: "refusal",
        Odd.TOOL_CALL: "tool_use",
        Odd.OTHER_FINISH: "stop_sequence",
        Odd.UNKNOWN_FINISH: "hit_the_wall",
    }
    seen = {kind: odd_result(claude, kind)["message"] for kind in reasons}
    assert {kind: one["stop_reason"] for kind, one in seen.items()} == reasons
    assert seen[Odd.TRUNCATED]["content"][0]["text"] == "first wo"
    assert seen[Odd.REFUSAL]["stop_details"]["category"] == "general_harms"
    assert [block["type"] for block in seen[Odd.TOOL_CALL]["content"]] == ["tool_use"]


def test_text_can_be_split_over_blocks_and_stand_behind_others(claude: AnthropicClient) -> None:
    def blocks(kind: Odd) -> list[tuple[str, str | None]]:
        content = odd_result(claude, kind)["message"]["content"]
        return [(block["type"], block.get("text")) for block in content]

    split = blocks(Odd.SPLIT_TEXT)
    assert (len(split), "".join(text or "" for _, text in split)) == (3, "first words of it")
    assert blocks(Odd.REASONING_PARTS) == [("thinking", None), ("text", "first words of it")]
    assert blocks(Odd.UNKNOWN_BLOCK) == [("hologram", None), ("text", "first words of it")]
    assert blocks(Odd.REASONING_ONLY) == [("thinking", None)]
    assert blocks(Odd.EMPTY) == []


def test_odd_usage_and_odd_results(claude: AnthropicClient) -> None:
    usage = odd_result(claude, Odd.CACHED_USAGE, "word " * 40)["message"]["usage"]
    assert usage["cache_read_input_tokens"] > usage["cache_creation_input_tokens"] > 0
    usage = odd_result(claude, Odd.IMPOSSIBLE_USAGE)["message"]["usage"]
    assert usage["output_tokens_details"]["thinking_tokens"] > usage["output_tokens"]
    assert odd_result(claude, Odd.NO_USAGE)["message"]["usage"] is None
    assert odd_result(claude, Odd.UNKNOWN_RESULT)["type"] == "suspended"
    both = [json.loads(line)["result"]["type"] for line in odd_results(claude, Odd.BOTH_FILES).split(b"\n") if line]
    assert Counter(both) == {"succeeded": 2, "errored": 1}


def test_text_faults_reach_the_text(claude: AnthropicClient) -> None:
    assert "\0" in odd_result(claude, Odd.NUL)["message"]["content"][0]["text"]
    assert "\u2028" in odd_result(claude, Odd.LINE_SEPARATOR)["message"]["content"][0]["text"]
    assert odd_result(claude, Odd.PROSE)["message"]["content"][0]["text"].startswith("Here is")


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({}, "api_error"),
        ({"status": 529}, "overloaded_error"),
        ({"status": 504}, "timeout_error"),
        ({"status": 429}, "rate_limit_error"),
        ({"status": 402}, "billing_error"),
        ({"status": 400}, "invalid_request_error"),
        ({"type": "overloaded_error"}, "overloaded_error"),
        ({"type": "authentication_error"}, "authentication_error"),
        ({"type": "permission_error"}, "permission_error"),
        ({"status": None}, "api_error"),
    ],
)
def test_a_line_fails_with_a_type_and_is_not_paid(claude: AnthropicClient, fault: dict[str, Any], kind: str) -> None:
    claude.faults(line_error={"match": "^bad", **fault})
    batch = claude.run([request("bad", "one"), request("good", "two")])
    assert counts(batch) == {"succeeded": 1, "errored": 1}
    assert claude.by_id(batch.id)["bad"]["error"]["error"]["type"] == kind
    assert (claude.books()["executed"], claude.books()["failed"]) == (1, 1)
    assert counts(claude.run([request("bad-again", "one")])) == {"succeeded": 1}


def test_an_error_can_lie_where_many_examples_have_it(claude: AnthropicClient) -> None:
    claude.faults(line_error={"shape": "nested", "status": 529})
    assert claude.answer(request("one"))["error"]["type"] == "overloaded_error"


@pytest.mark.parametrize("fault", ["drop_create_reply", "fail_create_after_accept"])
def test_a_create_whose_reply_is_lost_leaves_one_accepted_batch(claude: AnthropicClient, fault: str) -> None:
    claude.faults(**{fault: 1})
    error = anthropic.APIConnectionError if fault == "drop_create_reply" else anthropic.InternalServerError
    with pytest.raises(error):
        claude.submit(requests(3))
    [batch] = claude.batches.list().data
    assert counts(claude.wait(batch.id)) == {"succeeded": 3}
    assert claude.books()["executed"] == 3
    assert [(one["fault"], one["detail"]["batch"]) for one in claude.fault_log()] == [(fault, batch.id)]
    assert claude.books()["calls"][CREATE] == 1


def test_a_new_batch_is_not_found_by_its_id_for_a_while_but_listed(claude: AnthropicClient) -> None:
    claude.faults(hidden_after_create_s=1.5)
    batch = claude.submit(requests(1))
    with pytest.raises(anthropic.NotFoundError):
        claude.batches.retrieve(batch.id)
    assert claude.http.get(f"/v1/messages/batches/{batch.id}/results").status_code == 404
    assert [one.id for one in claude.batches.list().data] == [batch.id]
    time.sleep(1.6)
    assert counts(claude.wait(batch.id)) == {"succeeded": 1}
    assert claude.fault_log()[0]["fault"] == "hidden_after_create_s"


def test_the_next_batch_expires_half_way(claude: AnthropicClient) -> None:
    claude.faults(expire_next=1)
    batch = claude.run(requests(10))
    assert counts(batch) == {"succeeded": 5, "expired": 5}
    expired = {custom_id for custom_id, result in claude.by_id(batch.id).items() if result["type"] == "expired"}
    assert {entry["detail"]["custom_id"] for entry in claude.fault_log()} == expired
    assert counts(claude.run(requests(4))) == {"succeeded": 4}


def test_a_good_create_can_be_refused(claude: AnthropicClient) -> None:
    claude.faults(refuse_file=[{"match": "document 2", "message": "Your request was refused."}])
    assert counts(claude.run(requests(2))) == {"succeeded": 2}
    with pytest.raises(anthropic.BadRequestError, match="was refused"):
        claude.submit(requests(3))
    claude.faults(refuse_file={"code": "request_too_large"})
    with pytest.raises(anthropic.APIStatusError) as refused:
        claude.submit(requests(1))
    assert refused.value.status_code == 413
    assert len(claude.batches.list().data) == 1
    assert counts(claude.run(requests(3))) == {"succeeded": 3}


@pytest.mark.parametrize(
    ("fault", "status", "kind"),
    [
        ({"status": 429, "code": "enforced_spend_limit_reached"}, 429, "rate_limit_error"),
        ({"status": 402}, 402, "billing_error"),
        ({"status": 400, "message": "You have reached your specified workspace API usage limits."}, 400, None),
        ({"status": 404, "headers": {"retry-after": "5"}}, 404, "not_found_error"),
        ({"status": 529}, 529, "overloaded_error"),
    ],
)
def test_a_call_fails_in_anthropic_terms(
    claude: AnthropicClient, fault: dict[str, Any], status: int, kind: str | None
) -> None:
    claude.faults(call={"route": CREATE, **fault})
    with pytest.raises(anthropic.APIStatusError) as refused:
        claude.submit(requests(1))
    error = refused.value
    assert (error.status_code, error.type) == (status, kind or "invalid_request_error")
    assert error.response.headers.get("retry-after") == fault.get("headers", {}).get("retry-after")
    details = error.body["error"].get("details", {})  # type: ignore[index]
    assert details.get("error_code") == fault.get("code")
    claude.submit(requests(1))


def test_not_found_comes_and_goes_also_after_the_end(claude: AnthropicClient) -> None:
    batch = claude.run(requests(1))
    claude.faults(call={"route": RETRIEVE, "status": 404, "times": 2})
    for _ in range(2):
        with pytest.raises(anthropic.NotFoundError):
            claude.batches.retrieve(batch.id)
    assert claude.batches.retrieve(batch.id).processing_status == "ended"


def test_a_download_stops_half_way_with_and_without_saying_so(claude: AnthropicClient) -> None:
    batch = claude.run(requests(20))
    whole = claude.raw_results(batch.id)
    claude.faults(cut_content=1, cut_content_unannounced=1)
    with pytest.raises(httpx.HTTPError):
        claude.raw_results(batch.id)
    half = claude.http.get(f"/v1/messages/batches/{batch.id}/results")
    assert "content-length" not in half.headers
    assert whole.startswith(half.content)
    assert 0 < len(half.content) < len(whole)
    assert claude.raw_results(batch.id) == whole


def test_results_can_come_slowly_and_grow(claude: AnthropicClient) -> None:
    batch = claude.run(requests(20))
    whole = claude.raw_results(batch.id)
    claude.faults(slow_content_ms=20, content_chunk_bytes=len(whole) // 10)
    start = time.monotonic()
    assert claude.raw_results(batch.id) == whole
    assert time.monotonic() - start > 0.15
    claude.faults(short_content={"kind": "growing", "times": 2})
    seen = [claude.raw_results(batch.id) for _ in range(3)]
    assert (seen[0], seen[2]) == (b"", whole)
    assert whole.startswith(seen[1])


def test_a_batch_can_be_stuck_and_show_a_word_that_nobody_knows(claude: AnthropicClient) -> None:
    claude.faults(stuck="finalizing", status_shown="resting")
    batch = claude.submit(requests(2))
    claude.wait_for_executions(2)
    assert claude.batches.retrieve(batch.id).processing_status == "resting"
    claude.faults(stuck="finalizing")
    time.sleep(0.2)
    assert counts(claude.batches.retrieve(batch.id)) == {"processing": 2}
    claude.faults()
    assert counts(claude.wait(batch.id)) == {"succeeded": 2}


def test_an_ended_batch_can_hide_its_results_and_counts_and_lie(claude: AnthropicClient) -> None:
    claude.faults(line_error={"match": "r-0"})
    batch = claude.run(requests(2))
    claude.faults(hide_files=1, hide_counts=1)
    hidden = claude.batches.retrieve(batch.id)
    assert (hidden.results_url, counts(hidden)) == (None, {})
    claude.faults(counts_lie=True, total_off=3)
    lying = claude.batches.retrieve(batch.id)
    assert (lying.results_url is not None, counts(lying)) == (True, {"succeeded": 5})


def test_a_listing_can_hold_others_hide_ours_and_repeat_itself(claude: AnthropicClient) -> None:
    ours = [claude.run(requests(1)).id for _ in range(2)]
    claude.faults(listing={"order": "oldest first", "before": 3, "after": 1})
    listed = [one.id for one in claude.batches.list(limit=4)]  # the SDK follows every page
    assert [one for one in listed if one in ours] == ours
    assert (len(listed), listed.index(ours[0])) == (6, 3)
    claude.faults(listing={"hidden": True, "before": 1})
    assert [one.id for one in claude.batches.list()] == ["msgbatch_other000000"]
    claude.faults(listing={"repeating": True})
    again = claude.batches.list(after_id=ours[0])
    assert [one.id for one in again.data] == ours[::-1]
    assert again.has_more


def test_a_clock_that_is_behind_shows_in_times(claude: AnthropicClient) -> None:
    batch = claude.run(requests(1))
    claude.faults(clock_behind_s=3600)
    late = claude.batches.retrieve(batch.id)
    assert (batch.created_at - late.created_at).total_seconds() == pytest.approx(3600)
