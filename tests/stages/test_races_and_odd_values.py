"""What a sceptic tried: two freezes of one batch, answers that no column can hold, budgets of ended batches."""

from __future__ import annotations

import threading
import time

import pytest
from support.pipeline import Pipeline
from support.steps import batch_of, cancel, one_shard, run_unchecked, set_faults

from nightmill.domain.errors import SourceError, StaleWriter
from nightmill.stages.run_shard import Waiting
from nightmill.storage import fence
from nightmill.storage.session import Connection
from nightmill.upkeep import wind_down


def test_of_two_living_freezes_of_one_batch_only_one_attaches_its_rows_and_payloads(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first freeze that was taken for dead has filled its table; the retry makes it anew and finishes first."""
    filled, go_on = threading.Event(), threading.Event()
    enter = fence.enter_exclusive

    def paused(conn: Connection, holder: fence.Holder) -> None:
        if threading.current_thread().name == "zombie" and not filled.is_set():
            filled.set()
            go_on.wait(30)
        enter(conn, holder)

    monkeypatch.setattr(fence, "enter_exclusive", paused)
    refused: list[Exception] = []

    def zombie() -> None:
        try:
            pipeline.freeze()
        except StaleWriter as fault:
            refused.append(fault)

    first = threading.Thread(target=zombie, name="zombie")
    first.start()
    assert filled.wait(30)
    pipeline.sql("update documents set body = 'changed ' || body")
    second = threading.Thread(target=lambda: pipeline.freeze(first_try=False), name="retry")
    second.start()
    second.join(30)
    go_on.set()
    first.join(30)

    assert len(refused) == 1
    pipeline.drive(pipeline.plan(batch_of(pipeline, 1)))
    rows = pipeline.sql("select source_id, title from nightmill.rows_notes order by source_id")
    assert len(rows) == 20
    assert all("changed" in title for _, title in rows)


def test_an_answer_that_no_column_can_hold_gives_up_alone(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "publish:", "gaps: {min_completion: 0.9}\npublish:")
    pipeline.edit("job.yaml", "max_attempts: 3", "max_attempts: 1")
    pipeline.edit("job.yaml", "publish: {view: notes}", "publish: {view: dated}")
    pipeline.write(
        "output.py",
        "from datetime import UTC, datetime, timedelta, timezone\n"
        "from pydantic import BaseModel, ConfigDict, field_serializer\n\n\n"
        "class Output(BaseModel):\n"
        "    model_config = ConfigDict(extra='forbid')\n\n"
        "    title: str\n"
        "    written: datetime | None = None\n\n"
        "    @field_serializer('written')\n"
        "    def _odd(self, value: datetime | None) -> str:\n"
        "        return '2024-01-01T00:00:00+23:59' if 'number 7.' in self.title else '2024-01-01T00:00:00Z'\n",
    )
    pipeline.apply()

    report = run_unchecked(pipeline)

    assert report.counts == {"accepted": 19, "dead_lettered": 1}
    assert report.gaps == [("dead_lettered/output/does_not_fit_column", 1)]
    [(prompt, completion, model)] = pipeline.sql(
        "select prompt_tokens, output_tokens, model from nightmill.attempt where class = 'output'"
    )
    assert min(prompt, completion) > 0
    assert model == "echo-1"
    assert dict(report.failed).keys() == {"output"}  # nothing is unattributed


def test_a_cancelled_batch_takes_no_room_of_the_accounts_budget_once_it_is_wound_down(pipeline: Pipeline) -> None:
    batch, shard = one_shard(pipeline)
    pipeline.edit(
        "job.yaml",
        "  poll_interval_s: 1",
        f"  limits: {{enqueued_prompt_tokens: {batch.prompt_tokens}}}\n  poll_interval_s: 1",
    )
    set_faults(pipeline.simulator, hold=True)
    assert isinstance(pipeline.wake(shard, restarted=True), Waiting)
    cancel(pipeline, batch.batch_id)
    set_faults(pipeline.simulator, hold=False)
    until = time.monotonic() + 120
    while pipeline.sql("select 1 from nightmill.provider_batch where state not in ('COLLECTED', 'ABANDONED')"):
        assert time.monotonic() < until
        wind_down.run(pipeline.env, {pipeline.live.name: pipeline.live})

    counts = run_unchecked(pipeline, "run-2").counts
    assert counts.pop("accepted", 0) + counts.pop("reused", 0) == 20
    assert counts == {}


def test_a_version_that_is_a_time_does_not_depend_on_the_databases_time_zone(pipeline: Pipeline) -> None:
    pipeline.edit("job.yaml", "select id, version,", "select id, timestamptz '2026-01-01 00:00+00' as version,")
    run_unchecked(pipeline)
    name = pipeline.sql("select current_database()")[0][0]
    pipeline.sql(f"alter database {name} set timezone to 'Asia/Tokyo'")

    assert run_unchecked(pipeline, "run-2").counts == {"reused": 20}


def test_a_query_that_fails_on_a_row_says_so_without_its_text(pipeline: Pipeline) -> None:
    pipeline.sql("update documents set body = 'CANARY private words' where id = 'doc-03'")
    pipeline.edit("job.yaml", "from documents", "from documents where to_tsquery(body) is not null")
    with pytest.raises(SourceError, match="fails on the data") as seen:
        pipeline.freeze()
    assert "private" not in str(seen.value)
