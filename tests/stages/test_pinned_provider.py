"""What a run began with decides whom it asks and how long it waits, whatever the job folder says by now."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import one_shard, set_faults

from nightmill.domain.errors import SubmitUnknown
from nightmill.providers.openai.transport import OpenAIBatches
from nightmill.stages.run_shard import Waiting


def test_a_waiting_shard_watches_the_provider_that_its_run_was_pinned_to(pipeline: Pipeline) -> None:
    set_faults(pipeline.simulator, hold=True)
    _, shard = one_shard(pipeline)
    pipeline.wake(shard, restarted=True)
    pipeline.edit("job.yaml", "conn_id: provider\n", "conn_id: another\n  adapter: some_other\n")
    decision = pipeline.wake(shard)
    assert isinstance(decision, Waiting)
    assert (decision.adapter, decision.conn_id) == ("openai", "provider")


def test_the_quiet_period_is_the_one_that_the_create_call_went_out_with(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never_arrives(*_: Any) -> None:
        raise SubmitUnknown("timed out", "wait")

    pipeline.edit("job.yaml", "quiet_period_s: 0", "quiet_period_s: 600")
    _, shard = one_shard(pipeline)
    with monkeypatch.context() as patch:
        patch.setattr(OpenAIBatches, "create", never_arrives)
        pipeline.wake(shard, restarted=True)
    pipeline.edit("job.yaml", "quiet_period_s: 600", "quiet_period_s: 0")
    pipeline.clock_offset += timedelta(seconds=590)
    assert "not seen at the provider so far" in pipeline.wake(shard).line


def test_without_a_quiet_period_in_the_job_the_adapters_grace_counts(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never_arrives(*_: Any) -> None:
        raise SubmitUnknown("timed out", "wait")

    pipeline.edit("job.yaml", "  quiet_period_s: 0\n", "")
    _, shard = one_shard(pipeline)
    with monkeypatch.context() as patch:
        patch.setattr(OpenAIBatches, "create", never_arrives)
        pipeline.wake(shard, restarted=True)
    pipeline.clock_offset += timedelta(minutes=2, seconds=50)
    assert "not seen at the provider so far" in pipeline.wake(shard).line
    pipeline.clock_offset += timedelta(seconds=20)
    pipeline.wake(shard)
    [(state,), _] = pipeline.sql("select state from nightmill.provider_batch order by provider_batch_id")
    assert state == "ABANDONED"
