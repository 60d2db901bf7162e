"""`cancel` and `maintain`: what a person does where the DAGs are out of reach."""

from __future__ import annotations

import json

import pytest
from support.pipeline import Pipeline
from support.steps import batch_of, one_shard, provider_batches, set_faults, wake_until

from nightmill.cli.commands import main
from nightmill.domain.states import BatchState


@pytest.fixture
def deployed(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", pipeline.writer_dsn)
    monkeypatch.setenv("AIRFLOW_CONN_PROVIDER", json.dumps({"host": pipeline.simulator.base_url, "password": "key"}))
    monkeypatch.setenv("NIGHTMILL_OBJECT_STORE", f"file://{pipeline.store}")
    for name in ("NIGHTMILL_OBJECT_STORE_CONN_ID", "NIGHTMILL_JOBS_PATH", "AIRFLOW_CONN_NIGHTMILL_OWNER"):
        monkeypatch.delenv(name, raising=False)
    return pipeline


def maintain(pipeline: Pipeline, *options: str) -> int:
    return main(["maintain", "--jobs", str(pipeline.folder.parent), *options])


def test_a_batch_is_cancelled_and_then_wound_down(deployed: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    set_faults(deployed.simulator, hold=True)
    batch, shard = one_shard(deployed)
    wake_until(deployed, shard, "SUBMITTED")
    assert main(["cancel", "--batch", str(batch.batch_id), "--reason", "wrong prompt"]) == 0
    said = capsys.readouterr().out
    assert f"notes: batch {batch.batch_id} is CANCELLED (wrong prompt)" in said
    assert "1 provider batch at the provider" in said
    assert main(["cancel", "--batch", str(batch.batch_id), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again == {
        "batch_id": batch.batch_id, "state": "CANCELLED", "reason": "wrong prompt", "requested": False, "in_flight": 1,
    }  # fmt: skip
    assert maintain(deployed, "--dry-run") == 0
    planned = capsys.readouterr().out
    assert f"dry run, nothing was done: cancelled: batch {batch.batch_id}: provider batch" in planned
    assert [row[0] for row in provider_batches(deployed)] == ["SUBMITTED"]
    while [row[0] for row in provider_batches(deployed)] != ["COLLECTED"]:
        assert maintain(deployed, "--sweep", "cancelled") == 0
    assert f"cancelled: batch {batch.batch_id}" in capsys.readouterr().out


def test_what_cannot_be_cancelled_is_an_error(deployed: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cancel", "--batch", "77"]) == 1
    assert "There is no batch 77" in capsys.readouterr().err


def test_json_tells_sweep_batch_and_alert(deployed: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    batch, _ = one_shard(deployed)
    deployed.sql("update nightmill.shard set wake_at = null")
    deployed.sql("update nightmill.transition set made_at = now() - interval '9 days'")
    deployed.sql("update nightmill.batch set created_at = now() - interval '9 days'")
    assert maintain(deployed, "--json") == 0
    found = {one["sweep"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["abandoned"]["batch_id"] == batch.batch_id
    assert found["abandoned"]["alert"] is True
    assert "nightmill_owner is not defined" in found["retention"]["what"]
    assert batch_of(deployed, batch.batch_id).state is BatchState.CANCELLED
