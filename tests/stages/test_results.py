"""run_shard on the way back: failed, expired, lost, repeated and foreign lines, citations, awkward answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import (
    batch_of,
    cancel,
    counts,
    one_shard,
    paid_once,
    provider_batches,
    publish_unchecked,
    run_unchecked,
    set_faults,
    wake_until,
)

from dev.practice_provider.server import RunningSimulator
from nightmill.domain.errors import Blocked, StaleWriter
from nightmill.domain.states import BatchState
from nightmill.providers.openai.transport import OpenAIBatches
from nightmill.providers.port import ResultFile
from nightmill.stages.run_shard import Finished, collect

StartSimulator = Callable[..., RunningSimulator]


def test_lines_that_fail_are_retried_up_to_the_cap_and_others_are_unaffected(pipeline: Pipeline) -> None:
    """Item 2 fails twice, item 5 always, item 7 with an error that no retry mends, item 11 without a response."""
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0.9}\npublish:")
    batch, shard = one_shard(pipeline)
    set_faults(
        pipeline.simulator,
        line_error=[
            {"match": "-2$", "status": 429, "code": "rate_limit_exceeded", "times": 2},
            {"match": "-5$", "status": 503, "code": "server_overloaded", "message": "Busy.", "times": None},
            {"match": "-7$", "status": 400, "code": "invalid_value", "message": "Bad.", "times": None},
            {"match": "-11$", "status": None, "code": "", "times": 1},
        ],
    )
    pipeline.drive([shard])
    report = publish_unchecked(pipeline, batch)

    assert report.counts == {"accepted": 18, "dead_lettered": 2}
    assert pipeline.sql("select ordinal, class, code, message, attempts from nightmill.dead_letter order by 1") == [
        (5, "transient", "server_overloaded", "Busy.", 3),
        (7, "input", "invalid_value", "Bad.", 1),
    ]
    attempts = dict(pipeline.sql("select ordinal, count(*) from nightmill.attempt group by ordinal"))
    assert attempts == {**dict.fromkeys(range(20), 1), 2: 3, 5: 3, 11: 2}
    assert len(provider_batches(pipeline)) == 3
    assert report.shown is not None
    assert report.shown.gaps == 2
    paid_once(pipeline, 18)


def test_a_retry_round_waits_for_its_delay(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "base_delay_s: 0", "base_delay_s: 300")
    batch, shard = one_shard(pipeline)
    set_faults(pipeline.simulator, line_error=[{"match": "-2$", "times": 1}])
    wake_until(pipeline, shard, "COLLECTED")
    waiting = pipeline.wake(shard)
    assert "1 items wait for their next round" in waiting.line
    assert pipeline.sql("select state from nightmill.shard") == [("RETRY_WAIT",)]
    assert len(provider_batches(pipeline)) == 1
    # The settled ones do not wait for it.
    assert counts(pipeline, batch) == {"accepted": 19, "unsettled": 1}

    pipeline.sql("update nightmill.attempt set made_at = made_at - interval '301 seconds'")
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    paid_once(pipeline, 20)


def test_lines_without_budget_block_the_batch_and_cost_no_attempt(pipeline: Pipeline) -> None:
    batch, shard = one_shard(pipeline)
    billing = {"match": "-[0-4]$", "status": 429, "code": "insufficient_quota", "times": None}
    set_faults(pipeline.simulator, line_error=[billing])
    for _ in range(4):  # more often than the retry cap
        with pytest.raises(Blocked, match=r"5 lines of provider batch .* no budget left"):
            _wake_to_the_end(pipeline, shard)
        assert batch_of(pipeline, batch.batch_id).state is BatchState.BLOCKED
        assert counts(pipeline, batch) == {"accepted": 15, "unsettled": 5}
    sent = len(provider_batches(pipeline))
    pipeline.wake(shard)  # woken without a person: nothing is sent
    assert len(provider_batches(pipeline)) == sent

    set_faults(pipeline.simulator)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    paid_once(pipeline, 20)


def _wake_to_the_end(pipeline: Pipeline, shard: int) -> None:
    for attempt in range(100):
        if isinstance(pipeline.wake(shard, restarted=attempt == 0), Finished):
            return
        time.sleep(0.05)


def test_the_finished_part_of_an_expired_batch_is_kept_and_the_rest_is_sent_again(
    pipeline: Pipeline, start_simulator: StartSimulator
) -> None:
    pipeline.simulator = start_simulator(completion_window_s=1)
    set_faults(pipeline.simulator, hold=True, hold_after=8)
    batch, shard = one_shard(pipeline)
    wake_until(pipeline, shard, "COLLECTED")
    set_faults(pipeline.simulator)
    assert counts(pipeline, batch) == {"accepted": 8, "unsettled": 12}
    codes = pipeline.sql("select class, code, count(*) from nightmill.attempt group by 1, 2 order by 3")
    assert codes == [(None, None, 8), ("transient", "batch_expired", 12)]
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    paid_once(pipeline, 20)


def tamper(monkeypatch: pytest.MonkeyPatch, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Change the lines of the first output file on its way here, as often as it is fetched."""
    real, first = OpenAIBatches._fetched, list[str]()

    def fetched(self: OpenAIBatches, name: str, ref: str, path: Path) -> ResultFile:
        file = real(self, name, ref, path)
        first.append(ref)
        if ref != first[0]:
            return file
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
        return file

    monkeypatch.setattr(OpenAIBatches, "_fetched", fetched)


def test_lost_repeated_foreign_and_unreadable_lines_lose_no_item_and_count_no_item_twice(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(lines: list[bytes]) -> list[bytes]:
        foreign = lines[4].replace(b'"custom_id":"', b'"custom_id":"another')
        outside = lines[5].replace(json.loads(lines[5])["custom_id"].encode(), b"x-99999")
        return [*lines[3:], lines[3], lines[6], foreign, outside, b"not json\n", b"\n", lines[2][:40] + b"\n"]

    tamper(monkeypatch, change)
    pipeline.edit("job.yaml", "base_delay_s: 0", "base_delay_s: 600")  # so that the next round waits for us to look
    batch, shard = one_shard(pipeline)
    wake_until(pipeline, shard, "COLLECTED")
    assert counts(pipeline, batch)["accepted"] == 17
    assert pipeline.sql("select class, count(*) from nightmill.attempt where code = 'lost_line' group by 1") == [
        ("transient", 3)
    ]
    pipeline.edit("job.yaml", "base_delay_s: 600", "base_delay_s: 0")
    pipeline.drive([shard])
    assert publish_unchecked(pipeline, batch).counts == {"accepted": 20}
    assert pipeline.sql("select count(*), count(distinct source_id) from results.notes") == [(20, 20)]
    # The three lost answers were paid and had to be asked for again: the ledger says so, and nothing else was.
    assert pipeline.simulator.books(summary=True)["executed"] == 23
    assert pipeline.sql("select count(*) from nightmill.attempt") == [(23,)]


def test_answers_with_every_kind_of_awkward_text_are_stored_as_they_are(
    pipeline: Pipeline, start_simulator: StartSimulator, tmp_path: Path
) -> None:
    """NUL and half surrogate pairs cannot be stored and are replaced; line separators inside JSON split nothing."""
    title = 'a\u2028b\u2029c\x85d \\ " {{x}} 合同 🦉 \x0b\x0c'
    gold = [
        {"match": "Text number 1.", "answer": {"title": title, "pages": 1}},
        {"match": "Text number 2.", "answer": '{"title": "nul \\u0000 half \\ud83d", "pages": 2}'},
        {"match": "Text number 3.", "answer": f'{{"title": "big", "pages": {10**30}}}'},
        {"match": "Text number 4.", "answer": '```json\n{"title": "fenced", "pages": 4}\n```'},
        {"match": "Text number 5.", "answer": None, "refusal": "I cannot."},
        {"match": "Text number 6.", "answer": '{"title": "cut', "finish_reason": "length"},
        {"match": "Text number 7.", "answer": "CANARY is not JSON"},
    ]
    path = tmp_path / "gold.jsonl"
    path.write_text("\n".join(map(json.dumps, gold)))
    pipeline.simulator = start_simulator(gold_path=path)
    pipeline.edit("job.yaml", "model: echo-1", "model: gold-1")
    pipeline.edit("job.yaml", "max_attempts: 3", "max_attempts: 1")
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0}\npublish:")
    pipeline.sql("delete from documents where id > 'doc-07'")

    report = run_unchecked(pipeline)

    assert report.counts == {"accepted": 3, "dead_lettered": 4}
    assert pipeline.sql("select title, pages from results.notes order by source_id") == [
        (title, 1),
        ("nul \ufffd half \ufffd", 2),
        ("fenced", 4),
    ]
    letters = pipeline.sql(
        "select ordinal + 1, class, code, message like '%%CANARY%%' from nightmill.dead_letter order by 1"
    )
    assert letters == [
        (3, "output", "number_range", False),
        (5, "output", "refusal", False),
        (6, "output", "truncated", False),
        (7, "output", "not_json", False),
    ]


def test_an_answer_that_quotes_what_its_document_does_not_say_is_asked_again_and_then_gives_up(
    pipeline: Pipeline, start_simulator: StartSimulator, tmp_path: Path
) -> None:
    gold = [
        {"match": f"Text number {n}.", "answer": {"title": f"Text number {n}. Text", "pages": n}}
        for n in range(2, 21)
        if n != 12
    ]
    gold += [
        {"match": "Text number 1.", "answer": {"title": "Nobody said this anywhere.", "pages": 1}},
        {"match": "Text number 12.", "answer": {"title": "Text number 13.", "pages": 12}},  # another's document
    ]
    path = tmp_path / "gold.jsonl"
    path.write_text("\n".join(map(json.dumps, gold)))
    pipeline.simulator = start_simulator(gold_path=path, seed=5)
    pipeline.edit("job.yaml", "model: echo-1", "model: gold-1")
    pipeline.edit("job.yaml", "publish:", "validation: {citations: [{quote: title, source: body}]}\npublish:")
    batch, shard = one_shard(pipeline)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 18, "dead_lettered": 2}
    assert pipeline.sql("select ordinal, code, attempts from nightmill.dead_letter order by 1") == [
        (0, "citation_missing", 2),
        (11, "citation_missing", 2),
    ]
    spans = pipeline.sql("select source_id, citations from nightmill.result")
    assert len(spans) == 18
    for source_id, [span] in spans:
        assert (span["start"], span["method"]) == (0, "exact")
        assert span["quote"] == "title"
        assert span["end"] == len(f"Text number {int(source_id[-2:])}. Text")
    assert pipeline.sql("select source_id, citations from nightmill.rows_notes order by 1") == sorted(spans)


def test_a_stale_holder_in_mid_ingest_is_refused_and_quarantined(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, shard = one_shard(pipeline)
    monkeypatch.setattr(collect, "CHUNK", 6)
    _interrupt(monkeypatch, after=1, act=lambda: pipeline.drive([shard]))
    with pytest.raises(StaleWriter):
        _wake_to_the_end(pipeline, shard)
    assert pipeline.sql("select what like 'results of batch_%%', held_lease > 0, rows from nightmill.quarantine") == [
        (True, True, 6)
    ]
    assert counts(pipeline, batch) == {"accepted": 20}
    assert pipeline.sql("select count(*), count(distinct ordinal) from nightmill.attempt") == [(20, 20)]
    paid_once(pipeline, 20)


def test_after_a_cancel_in_mid_ingest_nothing_more_reaches_staging(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, shard = one_shard(pipeline)
    monkeypatch.setattr(collect, "CHUNK", 6)
    _interrupt(monkeypatch, after=2, act=lambda: cancel(pipeline, batch.batch_id))
    with pytest.raises(StaleWriter):
        _wake_to_the_end(pipeline, shard)
    for table in ("rows_notes", "outcome", "attempt"):
        assert pipeline.sql(f"select count(*) from nightmill.{table}") == [(12,)], table
    assert pipeline.sql("select rows from nightmill.quarantine") == [(6,)]
    finished = pipeline.wake(shard, restarted=True)
    assert isinstance(finished, Finished)
    assert "CANCELLED (asked for)" in finished.line
    assert pipeline.sql("select count(*) from nightmill.rows_notes") == [(12,)]


def _interrupt(monkeypatch: pytest.MonkeyPatch, after: int, act: Callable[[], None]) -> None:
    """Do something else once this many chunks were settled."""
    real, done = collect._settle, [0]

    def settle(*arguments: Any) -> Any:
        if done[0] == after:
            monkeypatch.setattr(collect, "_settle", real)
            act()
        done[0] += 1
        return real(*arguments)

    monkeypatch.setattr(collect, "_settle", settle)


def test_one_provider_batch_that_needs_a_person_keeps_no_other_from_being_collected(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.edit("job.yaml", "poll_interval_s: 1", "poll_interval_s: 1\n  limits: {requests_per_file: 10}")
    set_faults(pipeline.simulator, hold=True)
    batch, shard = one_shard(pipeline)
    pipeline.wake(shard, restarted=True)
    [(first,), (_,)] = pipeline.sql("select provider_id from nightmill.provider_batch order by provider_batch_id")
    set_faults(pipeline.simulator)
    real = OpenAIBatches.poll

    def poll(self: OpenAIBatches, provider_id: str) -> Any:
        snapshot = real(self, provider_id)
        if provider_id != first:
            return snapshot
        return type(snapshot)(
            **{
                **{name: getattr(snapshot, name) for name in snapshot.__slots__},
                "status": type(snapshot.status).UNKNOWN,
                "raw_status": "paused_by_wizard",
            }
        )

    monkeypatch.setattr(OpenAIBatches, "poll", poll)
    pipeline.wake(shard)
    pipeline.clock_offset += timedelta(hours=6, seconds=1)
    for _ in range(40):
        assert "nobody knows this status" in pipeline.wake(shard, restarted=True).line
        assert "'paused_by_wizard'" in batch_of(pipeline, batch.batch_id).state_reason
        if counts(pipeline, batch).get("accepted") == 10:
            break
        time.sleep(0.05)
    assert counts(pipeline, batch) == {"accepted": 10, "unsettled": 10}
    monkeypatch.setattr(OpenAIBatches, "poll", real)
    pipeline.drive([shard])
    assert counts(pipeline, batch) == {"accepted": 20}
    paid_once(pipeline, 20)
