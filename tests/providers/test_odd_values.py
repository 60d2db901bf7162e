"""Whatever a provider writes into its objects, errors and headers becomes a value that can be stored, logged and
shown. The client and sockets are real."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from providers.openai_talk import ENDED, KEY, fault_from, found_ids, lookup, said_in, talking_to
from providers.scripted_server import ScriptedServer, answer, error

from nightmill.domain.errors import ProviderRefused, ProviderUnavailable, SubmitUnknown
from nightmill.domain.snapshots import Absent, BatchStatus
from nightmill.providers.answers import Answer, Failed
from nightmill.providers.call_faults import MOST_RETRY_AFTER_S, retry_after_s
from nightmill.providers.cleaning import MOST_ID, MOST_TOKENS, as_sent, identifier, json_value, prose, storable, word
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.json_answers import read_time
from nightmill.providers.openai.models import list_models
from nightmill.providers.openai.shapes import batch_snapshot

NOW = datetime(2025, 3, 1, tzinfo=UTC)
NAN, INFINITY = float("nan"), float("inf")
ODD: list[Any] = [
    NAN, INFINITY, -INFINITY, -1, 1e300, 2**31, 2**63, 10**400, True, None, "", "\0", "a\0b", "\ud83d", "\x1b[31mred",
    "two\nlines\r", "\u202egnp.exe", "x" * 100_000, [], [1, NAN], {}, {"\0": "\ud800"}, {"a": {"b": [INFINITY]}},
]  # fmt: skip
MEMBERS = [
    "object", "status", "input_file_id", "output_file_id", "error_file_id", "request_counts", "usage", "errors",
    "metadata", "created_at", "completed_at", "expired_at", "cancelled_at", "failed_at", "model", "something_new",
]  # fmt: skip


def fits(value: Any) -> bool:
    """Whether Postgres, a log and a terminal can take it: no NUL, no half pair, nothing that a terminal obeys."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=str)
    json.loads(text)
    return "\\u0000" not in text and text.isprintable() and len(text) < 100_000 and bool(text.encode())


@pytest.mark.parametrize("member", MEMBERS)
def test_a_batch_object_with_any_odd_member_is_read_and_fits(member: str) -> None:
    for odd in ODD:
        told = batch_snapshot(json_value(json.dumps({**ENDED, member: odd}).encode()))
        counts = [told.requests_done, told.requests_answered, told.requests_total]
        shown = [told.provider_id, told.raw_status, told.input_ref, told.token, dict(told.result_refs), counts]
        shown += [[one.code, one.message, one.line] for one in told.complaints]
        assert fits([*shown, told.raw, told.created_at, told.ended_at])
        assert told.provider_id == "batch_1"
        assert all(0 <= count <= 2 * MOST_TOKENS for count in counts if count is not None)
        assert told.status is BatchStatus.ENDED or member == "status"


@pytest.mark.parametrize(
    ("status", "kept", "read"),
    [
        ("completed\0", "completed", BatchStatus.ENDED),
        ("\x1b[31mcompleted", "[31mcompleted", BatchStatus.UNKNOWN),
        (NAN, "unreadable", BatchStatus.UNKNOWN),
        (["completed"], "unreadable", BatchStatus.UNKNOWN),
        (None, "unreadable", BatchStatus.UNKNOWN),
        ("w" * 10_000, "w" * 128, BatchStatus.UNKNOWN),
    ],
)
def test_a_status_that_is_no_word_is_one_that_nobody_knows(status: Any, kept: str, read: BatchStatus) -> None:
    with talking_to(lambda request: answer({**ENDED, "status": status})) as (provider, _):
        told = provider.poll("batch_1")
    assert (told.raw_status, told.status) == (kept, read)


@pytest.mark.parametrize(
    "odd",
    [
        b'"usage": ' + b"[" * 100_000 + b"]" * 100_000,
        b'"usage": ' + b"9" * 100_000,
        b'"usage": 1e999999',
        b'"usage": "\xff\xfe"',
        b'"usage": [-Infinity, NaN]',
        b'"' + b"k" * 100_000 + b'": "\\ud800"',
    ],
    ids=["deep", "digits", "exponent", "not UTF-8", "not finite", "a long key"],
)
def test_a_body_that_no_strict_reader_takes_is_read(odd: bytes) -> None:
    body = json.dumps(ENDED).encode()[:-1] + b", " + odd + b"}"
    with talking_to(lambda request: answer(body)) as (provider, _):
        told = provider.poll("batch_1")
        assert provider.create("file-i", "t").provider_id == "batch_1"
    assert told.status is BatchStatus.ENDED
    assert fits(told.raw)


def test_an_odd_id_is_kept_as_plain_text_and_sent_back_as_it_was() -> None:
    odd = "batch_\0\x1b[31m/../?#%41 ü"
    with talking_to(lambda request: answer({**ENDED, "id": odd, "input_file_id": odd})) as (provider, server):
        told = provider.create("file-i", "t")
        assert told.provider_id == "batch_%00%1B[31m/../?#%2541%20%C3%BC"
        assert provider.poll(told.provider_id).input_ref == told.provider_id
        provider.create(told.provider_id, "t")
    assert server.requests[1].target == "/v1/batches/batch_%00%1B%5B31m%2F..%2F%3F%23%2541%20%C3%BC"
    assert json.loads(server.requests[2].body)["input_file_id"] == odd


@pytest.mark.parametrize("odd", [None, "", ".", "..", True, NAN, 1.5, [], {}, "x" * (MOST_ID + 1)])
def test_what_cannot_name_anything_is_no_id(odd: Any) -> None:
    with talking_to(lambda request: answer({**ENDED, "id": odd})) as (provider, _):
        fault_from(lambda: provider.create("file-i", "t"), SubmitUnknown)
        fault_from(lambda: provider.poll("batch_1"), ProviderUnavailable)
    assert identifier(odd) is None


@given(st.text(max_size=MOST_ID) | st.integers())
def test_an_id_that_is_kept_is_visible_ascii_and_gives_back_the_providers_own(odd: str | int) -> None:
    kept = identifier(odd)
    if kept is not None:
        assert kept.isascii() and kept.isprintable() and " " not in kept
        assert as_sent(kept) == str(odd)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_whatever_a_body_holds_its_copy_fits(value: Any) -> None:
    assert fits(storable(json_value(json.dumps(value).encode())))


@given(st.text())
def test_words_and_prose_are_printable_and_short(text: str) -> None:
    for clean in (word(text, 20), prose(text, 20)):
        assert clean is None or (clean.isprintable() and 0 < len(clean) <= 20)
    if text.isprintable() and 0 < len(text) <= 20:
        assert prose(text, 20) == text


def test_a_listing_with_odd_neighbours_still_shows_ours() -> None:
    ours = {**ENDED, "id": "batch_2", "metadata": {"nightmill_token": "t"}, "usage": {"input_tokens": NAN}}
    others = [{**ENDED, "id": f"other-{n}", "metadata": odd, "status": odd, "usage": odd} for n, odd in enumerate(ODD)]
    odd_token = {**ENDED, "id": "batch_\0", "metadata": {"nightmill_token": "\0\ud800"}}
    page = answer({"object": "list", "data": [*others, odd_token, ours], "has_more": False})
    with talking_to(lambda request: page) as (provider, _):
        assert found_ids(lookup(provider, "file-x", "t", NOW)) == ["batch_2"]
        tokens = [one.token for one in provider.list_ours(NOW).found]
    assert tokens == ["%00%EF%BF%BD", "t"]


def test_a_listing_goes_on_after_an_odd_id() -> None:
    pages = [{"data": [{**ENDED, "id": "b\0&x"}], "has_more": True}, {"data": [], "has_more": False}]
    with talking_to(lambda request: answer(pages.pop(0))) as (provider, server):
        assert lookup(provider, "f", "t", NOW) == Absent()
    assert "after=b%00%26x" in server.requests[1].target


def test_a_list_of_models_with_odd_names_is_read() -> None:
    names = [*ODD, "gpt\x1b[31m-5"]
    page = answer({"object": "list", "data": [{"id": name} for name in names] + ODD})
    with ScriptedServer(lambda request: page).running() as server:
        models = list_models(ProviderConnection("llm_night", server.base_url, KEY))
    assert "gpt[31m-5" in models
    assert all(name.isprintable() and len(name) <= 256 for name in models)


@pytest.mark.parametrize("status", ["400 Bad", "429 Slow", "500 Oops"])
def test_an_error_with_odd_members_is_classified_by_its_status_and_shows_none_of_them(status: str) -> None:
    for odd in ODD:
        body = {"error": {"message": odd, "type": odd, "code": odd, "param": odd}}
        with talking_to(lambda request, body=body: answer(body, status)) as (provider, _):
            calls: list[Callable[[], Any]] = [lambda p=provider: p.poll("b"), lambda p=provider: p.create("f", "t")]
            for call in calls:
                with pytest.raises((ProviderRefused, ProviderUnavailable, SubmitUnknown)) as seen:
                    call()
                assert fits(str(seen.value))


@given(
    st.text(st.characters(max_codepoint=255))
    | st.floats().map(str)
    | st.integers().map(str)
    | st.datetimes().map(lambda at: at.strftime("%a, %d %b %Y %H:%M:%S GMT"))
)
def test_whatever_stands_in_retry_after_is_a_bounded_time_or_none(value: str) -> None:
    for name in ("retry-after", "retry-after-ms"):
        seconds = retry_after_s({name: value}, NOW)
        assert seconds is None or 0 <= seconds <= MOST_RETRY_AFTER_S


def test_headers_with_escapes_and_numbers_that_cannot_be_reach_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    reply = error("429 Slow\x1b[31m", "rate_limit_exceeded", retry_after="1e308", x_request_id="req\x1b[2J")
    with talking_to(lambda request: reply) as (provider, _):
        fault = fault_from(lambda: provider.poll("batch_1"), ProviderUnavailable)
    assert fault.retry_after_s == MOST_RETRY_AFTER_S
    assert "HTTP Request" in caplog.text
    assert "\x1b" not in caplog.text + str(fault)


@pytest.mark.parametrize(
    "value", [NAN, INFINITY, 1e300, 10**400, -1e12, "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "1" * 5000]
)
def test_a_time_that_sums_would_overflow_on_is_none(value: Any) -> None:
    assert read_time(value) is None


@pytest.mark.parametrize(
    "odd",
    [b"9" * 5000, b"1e999", b"NaN", b'"\\ud800"', b"-7", b'"12"', b"[]", b"true"],
    ids=["digits", "exponent", "NaN", "half a pair", "negative", "text", "a list", "true"],
)
@pytest.mark.parametrize("member", ["usage", "status_code", "index", "model", "finish_reason", "custom"])
def test_an_odd_value_beside_an_answer_never_costs_the_answer(member: str, odd: bytes) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "{}"}, "finish_reason": "stop"}
    body = {"model": "m", "choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 2}, "custom": 0}
    line = json.dumps({"custom_id": "r", "response": {"status_code": 200, "body": body}, "error": None}).encode()
    places = {
        "usage": (b'"prompt_tokens": 5', b'"prompt_tokens": '),
        "status_code": (b'"status_code": 200', b'"status_code": '),
        "index": (b'"index": 0', b'"index": '),
        "model": (b'"model": "m"', b'"model": '),
        "finish_reason": (b'"finish_reason": "stop"', b'"finish_reason": '),
        "custom": (b'"custom": 0', b'"custom": '),
    }
    found, name = places[member]
    read = said_in(line.replace(found, name + odd))
    assert isinstance(read, Answer)
    assert read.text == "{}"
    assert fits([read.model, read.finish_reason, read.usage.prompt, read.usage.output])


def test_an_error_line_is_words_and_one_line_of_prose() -> None:
    for odd in ODD:
        error_ = {"code": odd, "type": odd, "message": odd}
        line = {"custom_id": "r", "response": {"status_code": odd, "body": {"error": error_}}, "error": error_}
        read = said_in(json.dumps(line).encode())
        assert isinstance(read, Failed)
        assert fits([read.status, read.code, read.type, read.message])
        assert len(read.message) <= 500
