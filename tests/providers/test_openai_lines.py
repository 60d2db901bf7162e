"""Result lines of OpenAI and of nearly compatible servers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from providers.openai_talk import lines_of, said_in, used

from nightmill.domain.endings import Ending
from nightmill.providers.answers import Answer, Failed, Unreadable, Usage

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def good(custom_id: str = "r-1", content: object = "{}", **body: object) -> dict:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}
    body = {"model": "m-2025", "choices": [choice], "usage": usage, **body}
    return {
        "id": "x",
        "custom_id": custom_id,
        "response": {"status_code": 200, "request_id": "q", "body": body},
        "error": None,
    }


def read_one(line: object):
    raw = line if isinstance(line, bytes) else json.dumps(line).encode()
    return said_in(raw)


def test_an_answer_is_read():
    assert read_one(good()) == Answer("{}", False, Ending.FINISHED, "stop", "m-2025", used(5, 2, 3))


def test_a_body_that_is_a_json_string_is_read():
    line = good()
    line["response"]["body"] = json.dumps(line["response"]["body"])
    assert read_one(line) == Answer("{}", False, Ending.FINISHED, "stop", "m-2025", used(5, 2, 3))


def test_content_in_parts_is_joined():
    assert read_one(good(content=[{"type": "text", "text": "{"}, {"type": "text", "text": "}"}])).text == "{}"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "{}"}], "{}"),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "{}"}], "{}"),
        ([{"type": "output_text", "text": "{}"}], "{}"),
        ([{"type": "reasoning", "text": "hm"}], None),
        ([{"type": "tool_use", "name": "look_up"}], None),
        ([{"type": "text", "text": "{}"}, "stray", None], "{}"),
    ],
)
def test_reasoning_parts_of_a_list_are_not_the_answer(content, text):
    assert read_one(good(content=content)).text == text


@pytest.mark.parametrize(
    ("message", "instead"),
    [
        ({"content": None, "reasoning_content": "It is {}"}, "reasoning"),
        ({"content": "", "reasoning": "It is {}"}, "reasoning"),
        ({"content": [{"type": "thinking", "thinking": "hm"}]}, "reasoning"),
        ({"content": None, "tool_calls": [{"id": "c"}]}, "tool_calls"),
        ({"content": None, "function_call": {"name": "f"}}, "tool_calls"),
        ({"content": [{"type": "tool_use", "name": "f"}]}, "tool_calls"),
        ({"content": None, "reasoning_content": "hm", "tool_calls": [{"id": "c"}]}, "tool_calls"),
        ({"content": None, "tool_calls": []}, ""),
        ({"content": "{}", "reasoning_content": "hm"}, ""),
    ],
)
def test_content_null_says_what_the_message_holds_in_its_place(message, instead):
    line = good()
    line["response"]["body"]["choices"][0]["message"] = message
    assert read_one(line).instead == instead


@pytest.mark.parametrize("others", [1, 3])
@pytest.mark.parametrize("index", [0, "0", 0.0])
def test_of_choices_out_of_order_the_one_with_index_0_counts(others, index):
    line = good()
    [choice] = line["response"]["body"]["choices"]
    more = [choice | {"index": 3 - n, "message": {"content": f"other {n}"}} for n in range(others)]
    line["response"]["body"]["choices"] = [*more, choice | {"index": index}]
    assert read_one(line).text == "{}"


def test_of_choices_without_an_index_the_first_one_counts():
    line = good()
    [choice] = line["response"]["body"]["choices"]
    del choice["index"]
    line["response"]["body"]["choices"] = [choice, choice | {"message": {"content": "other"}}]
    assert read_one(line).text == "{}"


ERROR = {"message": "m", "type": "invalid_request_error", "code": "bad"}


@pytest.mark.parametrize(
    ("response", "error", "status", "code", "message"),
    [
        ({"status_code": "400", "body": {"error": ERROR}}, None, 400, "bad", "m"),
        ({"status_code": "HTTP 400", "body": {"error": ERROR}}, None, 400, "bad", "m"),
        ({"status_code": 400.0, "body": {"error": ERROR}}, None, 400, "bad", "m"),
        ({"status_code": -1, "body": {"error": ERROR}}, None, 0, "bad", "m"),
        ({"status_code": None, "body": {"error": ERROR}}, None, 0, "bad", "m"),
        ({"body": {"error": ERROR}}, None, 0, "bad", "m"),
        ({"status_code": 4000, "body": {"error": ERROR}}, None, 0, "bad", "m"),
        ({"status_code": True, "body": {"error": ERROR}}, None, 0, "bad", "m"),
        ({"status_code": 0, "body": {"error": {"message": "m", "code": 400}}}, None, 400, "provider_unknown", "m"),
        ({"status_code": 0, "body": {"error": {"message": "m", "status": 400}}}, None, 400, "provider_unknown", "m"),
        (None, {"code": "400", "message": "m"}, 400, "provider_unknown", "m"),
        (None, {"code": None, "message": "Error code: 400 - m"}, 0, "provider_unknown", "Error code: 400 - m"),
        (None, "Error code: 400 - m", 0, "provider_unknown", "Error code: 400 - m"),
        (None, json.dumps({"error": ERROR}), 0, "bad", "m"),
        (None, {"error": {"error": ERROR}}, 0, "bad", "m"),
        ({"status_code": 500, "body": {"errors": [ERROR]}}, None, 500, "bad", "m"),
        ({"status_code": 422, "body": {"detail": [{"msg": "m", "type": "missing"}]}}, None, 422, "missing", "m"),
    ],
)
def test_a_status_as_text_minus_one_or_missing_beside_an_error_is_read_by_what_is_there(
    response, error, status, code, message
):
    found = read_one({"custom_id": "r", "response": response, "error": error})
    assert isinstance(found, Failed)
    assert (found.status, found.code, found.message) == (status, code, message)


@pytest.mark.parametrize("status", ["200", "200 OK", 200.0, None, 0, -1, True])
def test_an_answer_under_an_odd_status_is_an_answer(status):
    line = good()
    line["response"]["status_code"] = status
    assert read_one(line).text == "{}"


@pytest.mark.parametrize("error", [{}, [], "", "null", {"code": None, "message": None}, False, {"message": ""}])
def test_an_error_that_says_nothing_costs_no_answer(error):
    assert read_one(good() | {"error": error}).text == "{}"


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (None, Usage()),
        ({"prompt_tokens": 5, "completion_tokens": None}, used(5, None)),
        ({"prompt_tokens": "5", "completion_tokens": 2.0, "prompt_tokens_details": None}, used(None, 2)),
        ({"input_tokens": 4, "output_tokens": 1}, used(4, 1)),
        ([], Usage()),
        ({"prompt_tokens": -1}, Usage(odd={"prompt_tokens": "-1"})),
        ({"prompt_tokens": True, "completion_tokens": 2}, used(None, 2)),
    ],
)
def test_c44_usage_that_is_not_said_is_unknown_and_not_zero(usage, read):
    assert read_one(good(usage=usage)).usage == read


def test_c44_a_body_without_usage_is_an_answer():
    line = good()
    del line["response"]["body"]["usage"]
    assert read_one(line).usage == Usage()


def test_c79_refusals_and_filtered_answers_are_told_apart():
    refused = good(choices=[{"message": {"content": None, "refusal": "I can not."}, "finish_reason": "stop"}])
    assert read_one(refused) == Answer(None, True, Ending.FINISHED, "stop", "m-2025", used(5, 2, 3))
    filtered = good(choices=[{"message": {"content": "", "refusal": None}, "finish_reason": "content_filter"}])
    assert read_one(filtered) == Answer(None, False, Ending.FILTERED, "content_filter", "m-2025", used(5, 2, 3))


def test_c77_a_truncated_answer_says_so():
    cut = good(choices=[{"message": {"content": '{"a"'}, "finish_reason": "length"}])
    assert read_one(cut).finish_reason == "length"


NONE = Usage()


@pytest.mark.parametrize(
    ("line", "result"),
    [
        # C02
        (
            {"custom_id": "r", "response": {"status_code": 0, "request_id": "", "body": {}}, "error": None},
            Failed(0, "provider_unknown", "", NONE),
        ),
        # C05
        (
            {"custom_id": "r", "response": None, "error": {"code": "batch_expired", "message": "late"}},
            Failed(0, "batch_expired", "late", NONE),
        ),
        # C64
        (
            {"custom_id": "r", "response": {"status_code": 400, "body": None}, "error": "no Embeddings API"},
            Failed(400, "provider_unknown", "no Embeddings API", NONE),
        ),
        (
            {
                "custom_id": "r",
                "response": {"status_code": 400, "body": {"object": "error", "message": "m", "code": 400}},
            },
            Failed(400, "provider_unknown", "m", NONE),
        ),
        # C47
        (
            {
                "custom_id": "r",
                "response": {
                    "status_code": 429,
                    "body": {"error": {"message": "m", "type": "requests", "code": "rate_limit_exceeded"}},
                },
            },
            Failed(429, "rate_limit_exceeded", "m", NONE, "requests"),
        ),
        # an error inside a 200 body
        (
            {"custom_id": "r", "response": {"status_code": 200, "body": {"error": {"message": "m", "type": "oops"}}}},
            Failed(200, "oops", "m", NONE, "oops"),
        ),
        # C65
        (
            {"custom_id": "r", "response": {"status_code": 200, "body": {"messages": []}}},
            Failed(200, "provider_protocol_error", "the body carries no answer", NONE),
        ),
        (
            {"custom_id": "r", "response": {"status_code": 200, "body": {"choices": []}}},
            Failed(200, "provider_protocol_error", "the body carries no answer", NONE),
        ),
        (
            {"custom_id": "r", "response": {"status_code": 200, "body": {"choices": "x"}}},
            Failed(200, "provider_protocol_error", "the body carries no answer", NONE),
        ),
        (
            {"custom_id": "r", "response": {"status_code": 200, "body": "not json"}},
            Failed(200, "provider_protocol_error", "the body carries no answer", NONE),
        ),
        (
            {"custom_id": "r", "response": {"status_code": 500, "body": "oops"}},
            Failed(500, "provider_unknown", "oops", NONE),
        ),
        ({"custom_id": "r"}, Failed(0, "provider_unknown", "", NONE)),
    ],
)
def test_c02_c05_c47_c64_c65_lines_without_an_answer_are_errors_of_their_item(line, result):
    assert read_one(line) == result


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b'{"custom_id":',
        b"[]",
        b'{"custom_id":5}',
        b"{}",
        b'{"custom_id":"r","response":7}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_c34_a_bad_line_is_a_value_and_does_not_stop_the_next(line):
    results = lines_of([line, b"", b" ", json.dumps(good("r-9")).encode()])
    assert isinstance(results[0], Unreadable)
    assert results[0].line == 1
    assert results[1].record_id == "r-9"
    assert len(results) == 2


@given(
    lines=st.lists(
        st.binary()
        | values.map(lambda value: json.dumps(value).encode())
        | st.fixed_dictionaries({"custom_id": st.just("r"), "response": values, "error": values}).map(
            lambda value: json.dumps(value).encode()
        )
    )
)
def test_whatever_a_file_holds_every_line_becomes_one_value(lines):
    results = lines_of(lines)
    assert len(results) == sum(1 for line in lines if line.removeprefix(b"\xef\xbb\xbf").strip())


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (rb"ok \ud83d end", "ok \ufffd end"),
        (b"ok \xff end", "ok \ufffd end"),
        (rb"\ud83d\ude00 \udc00", "\U0001f600 \ufffd"),
    ],
)
def test_c71_a_line_that_is_not_clean_unicode_still_gives_its_paid_answer(raw, text):
    line = json.dumps(good(content="HERE")).encode().replace(b"HERE", raw)
    answer = read_one(line)
    assert (answer.text, answer.sanitised, answer.usage) == (text, True, used(5, 2, 3))


def test_c74_not_a_number_beside_an_answer_does_not_cost_the_answer():
    line = json.dumps(good(logprob=float("-inf"))).encode()
    assert read_one(line).text == "{}"
    assert read_one(json.dumps(good(usage={"prompt_tokens": 5, "x": float("nan")})).encode()).usage.prompt == 5
