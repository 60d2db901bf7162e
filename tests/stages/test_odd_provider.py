"""What a provider sends beside the answers never keeps paid answers from being collected. The local provider is real,
and so are the client, the sockets and the ledger."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import pytest
from providers.scripted_server import Request
from support.odd_provider import HUGE, changed_by, with_members
from support.pipeline import Pipeline
from support.steps import paid_once, run_unchecked, set_faults

from nightmill.domain.errors import Blocked
from nightmill.providers.connection import AnswerLimits
from nightmill.upkeep import orphans

NAN = float("nan")
DEEP: Any = json.loads("[" * 900 + "]" * 900)


def collected(pipeline: Pipeline) -> None:
    report = run_unchecked(pipeline)
    assert report.counts == {"accepted": 20}
    paid_once(pipeline, 20)
    pipeline.sql("select * from nightmill.provider_batch_usage, nightmill.attempt_cost")


@pytest.mark.parametrize(
    ("odd", "usage"),
    [
        ({"usage": {"input_tokens": NAN, "output_tokens": float("-inf")}}, {"input_tokens": "nan"}),
        ({"usage": {"note": "\0\ud800\x1b[31m", "input_tokens": HUGE}}, {"note": "\ufffd\ufffd\ufffd[31m"}),
        ({"usage": {"input_tokens": -5, "output_tokens": "7", "total_tokens": True}}, {"input_tokens": "-5"}),
        ({"usage": {"x" * 5000: "y" * 1_000_000, "deep": DEEP}}, {"x" * 500: "y" * 500}),
        ({"usage": [1]}, None),
    ],
    ids=["NaN", "NUL, half a pair, escapes, digits", "no counts", "enormous", "a list"],
)
def test_an_ended_batch_with_odd_usage_is_collected_and_what_it_said_is_kept_as_text(
    pipeline: Pipeline, odd: dict[str, Any], usage: dict[str, Any] | None
) -> None:
    pipeline.edit("job.yaml", "shards: {count: 2}", "shards: {count: 1}")
    with changed_by(pipeline, with_members(**odd)):
        collected(pipeline)
    [(kept,)] = pipeline.sql("select usage from nightmill.provider_batch")
    assert (kept is None) == (usage is None)
    assert (usage or {}).items() <= (kept or {}).items()
    reported = pipeline.sql("select reported_prompt_tokens from nightmill.provider_batch_usage")
    assert reported == [(None,)]  # what is no count never makes a price


def test_an_ended_batch_that_is_odd_in_all_else_is_collected(pipeline: Pipeline) -> None:
    """NUL in status, ids, kind, error codes and metadata, counts and times that cannot be."""
    odd = with_members(
        object="batch\0",
        status="completed\0",
        input_file_id="file-\0\x1b[2J",
        error_file_id=NAN,
        errors={"object": "list", "data": [{"code": "a\0b", "message": "\x1b[31m\0", "line": HUGE}, NAN, [1]]},
        request_counts={"total": HUGE, "completed": NAN, "failed": -1, "x\0": 1, "odd": "12", "yes": True},
        metadata={"nightmill_token": "\0", "other": [NAN]},
        completed_at="9999-12-31T23:59:59Z",
        created_at=HUGE,
        expired_at=NAN,
    )
    with changed_by(pipeline, odd):
        collected(pipeline)
    kept = pipeline.sql("select state, raw_status, requests_done, requests_total from nightmill.provider_batch")
    assert {one[:2] for one in kept} == {("COLLECTED", "completed")}
    # Of the odd counts none is kept; a look while it still ran may have left good ones.
    assert all(total is None or done <= total <= 20 for *_, done, total in kept)


def test_ids_that_no_database_and_no_terminal_can_hold_name_their_file_and_batch_all_the_same(
    pipeline: Pipeline,
) -> None:
    def change(request: Request, body: bytes) -> bytes:
        if request.target.endswith("/content"):
            return body
        return re.sub(rb'"((?:batch|file)[-_]\w+)"', rb'"\1\\u0000\\u001b[1m/%"', body)

    def back(target: str) -> str:
        return target.replace("%00%1B%5B1m%2F%25", "")

    def forth(request: Request, body: bytes) -> bytes:
        seen.append(request)
        return change(request, body)

    seen: list[Request] = []
    pipeline.edit("job.yaml", "shards: {count: 2}", "shards: {count: 1}")
    with changed_by(pipeline, forth, back, lambda body: body.replace(rb"\u0000\u001b[1m/%", b"")):
        collected(pipeline)
    [(provider_id, file_id)] = pipeline.sql(
        "select provider_id, result_refs ->> 'output' from nightmill.provider_batch"
    )
    assert re.fullmatch(r"batch_\w+%00%1B\[1m/%25", provider_id)
    assert re.fullmatch(r"file-\w+%00%1B\[1m/%25", file_id)
    assert any(request.method == "DELETE" and "%00%1B" in request.target for request in seen)


def test_lines_with_odd_models_codes_messages_and_numbers_cost_their_neighbours_nothing(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0.5}\npublish:")
    error = {
        "status": 400,
        "code": "bad\x1b[31m\0",
        "type": "t",
        "message": "a\nb\x1b[2J" + "c" * 10_000,
        "times": None,
    }
    set_faults(pipeline.simulator, line_error=[{"match": "-7$", **error}])

    def change(request: Request, body: bytes) -> bytes:
        if not request.target.endswith("/content"):
            return body
        body = body.replace(b'"model":"echo-1"', b'"model":"echo\\u0000-\\u001b[31m%b"' % (b"1" * 100_000))
        return body.replace(b'"finish_reason":"stop"', b'"finish_reason":"stop","seed":%b' % (b"9" * 5_000))

    caplog.set_level(logging.INFO)
    with changed_by(pipeline, change):
        report = run_unchecked(pipeline)
    assert report.counts == {"accepted": 19, "dead_lettered": 1}
    assert pipeline.sql("select distinct left(model, 13), length(model) from nightmill.rows_notes") == [
        ("echo-[31m1111", 256)
    ]
    [(code, message)] = pipeline.sql("select code, message from nightmill.dead_letter")
    assert (code, len(message), message[:8]) == ("bad[31m", 500, "a b\ufffd[2Jc")
    assert "\x1b" not in caplog.text


def test_a_file_that_is_refused_with_odd_codes_is_sent_in_halves_and_the_reason_is_clean(pipeline: Pipeline) -> None:
    odd = {"code": "bad\x1b[31m\0\n" + "c" * 5_000, "message": "\0"}
    set_faults(pipeline.simulator, refuse_file=[{"times": 1, **odd}])
    pipeline.edit("job.yaml", "shards: {count: 2}", "shards: {count: 1}")
    collected(pipeline)
    [(reason,)] = pipeline.sql("select state_reason from nightmill.provider_batch where state = 'ABANDONED'")
    assert reason.endswith("without naming a line: bad[31m" + "c" * 121)


def test_a_result_file_beyond_its_limit_waits_for_a_person_and_is_collected_once_the_limit_is_raised(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(request: Request, body: bytes) -> bytes:
        return (
            body + b'{"custom_id": "foreign", "x": "%b"}\n' % (b"x" * (2 << 20))
            if "/content" in request.target
            else body
        )

    pipeline.edit("job.yaml", "shards: {count: 2}", "shards: {count: 1}")
    with changed_by(pipeline, change):
        batch = pipeline.freeze()
        [shard] = pipeline.plan(batch)
        pipeline.answers = AnswerLimits(max_line_bytes=1 << 20)
        with pytest.raises(Blocked, match=r"more than the 1,048,576 bytes of max_line_bytes while downloading") as seen:
            pipeline.drive([shard])
        assert "max_line_bytes into the connection's extra" in seen.value.remedy
        assert pipeline.sql("select state from nightmill.provider_batch") == [("ENDED",)]
        pipeline.answers = AnswerLimits()
        pipeline.drive([shard])
    assert pipeline.sql("select state from nightmill.provider_batch") == [("COLLECTED",)]
    paid_once(pipeline, 20)


def test_a_result_file_of_a_million_lines_for_twenty_requests_is_kept_and_not_read(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightmill.stages.run_shard.results.SPARE_LINES", 1_000)
    more = [b"x\n" * 2_000]

    def change(request: Request, body: bytes) -> bytes:
        return body + b"\n" * 5_000 + (more.pop() if more else b"") if "/content" in request.target else body

    pipeline.edit("job.yaml", "shards: {count: 2}", "shards: {count: 1}")
    with changed_by(pipeline, change):
        batch = pipeline.freeze()
        [shard] = pipeline.plan(batch)
        with pytest.raises(Blocked, match="more than 1,200 lines for 20 requests"):
            pipeline.drive([shard])
        assert list(pipeline.store.rglob("evidence/*-output.jsonl.zst"))
        pipeline.drive([shard])  # blank lines are none, however many
    paid_once(pipeline, 20)


def test_an_odd_batch_of_somebody_elses_stops_no_sweep_of_the_account(pipeline: Pipeline) -> None:
    odd: dict[str, Any] = {"object": "batch", "status": NAN, "metadata": {"nightmill_token": "\0\ud800"}, "usage": NAN}
    foreign = {"id": "batch_\0\x1b[31m", **odd}

    def change(request: Request, body: bytes) -> bytes:
        told = json.loads(body)
        return json.dumps({**told, "data": [foreign, *told["data"]]}).encode()

    with changed_by(pipeline, change):
        [action] = orphans.run(pipeline.env, {pipeline.live.name: pipeline.live})
    assert action.alert
    assert action.what.startswith("batch_%00%1B[31m (unreadable) carries a token that this ledger does not know")
