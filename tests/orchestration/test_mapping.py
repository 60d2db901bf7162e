"""What run_shard maps over."""

from __future__ import annotations

import json

import pytest
from support.pipeline import Pipeline

from nightmill.orchestration import connections, tasks
from nightmill.stages import plan


def test_a_label_fits_into_what_airflow_keeps_whatever_tenants_are_called(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.sql("update documents set tenant = repeat('x', 10000)")
    batch = pipeline.freeze()
    plan.run(pipeline.env, batch.batch_id)
    monkeypatch.setattr(connections, "environment", lambda: pipeline.env)
    labels = [one["shard_label"] for one in tasks.preflight(str(pipeline.folder), batch.batch_id)]
    assert all(label.startswith("xxx") and label.endswith(" tokens") and len(label) < 200 for label in labels)


def test_c92_c97_a_mapped_task_gets_its_shards_id_and_no_place_in_a_list_or_document(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = pipeline.freeze()
    plan.run(pipeline.env, batch.batch_id)
    monkeypatch.setattr(connections, "environment", lambda: pipeline.env)
    mapped = tasks.preflight(str(pipeline.folder), batch.batch_id)
    assert [one.keys() for one in mapped] == [{"shard_id", "shard_label"}] * 2
    assert [(one["shard_id"],) for one in mapped] == pipeline.sql("select shard_id from nightmill.shard order by 1")
    assert "Text number" not in json.dumps(mapped)
