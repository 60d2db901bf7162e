"""The operations DAGs as Airflow sees them, and their tasks in an Airflow context."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import batch_of, cancel, one_shard, provider_batches, set_faults, wake_until

from nightmill.domain.maintenance import Sweep
from nightmill.domain.states import BatchState
from nightmill.orchestration import operations

JOBS = Path(__file__).resolve().parents[2] / "examples" / "jobs"


@pytest.fixture
def deployed(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", pipeline.writer_dsn)
    account = {"conn_type": "generic", "host": pipeline.simulator.base_url, "password": "key"}
    monkeypatch.setenv("AIRFLOW_CONN_PROVIDER", json.dumps(account))
    monkeypatch.setenv("NIGHTMILL_OBJECT_STORE", f"file://{pipeline.store}")
    monkeypatch.delenv("NIGHTMILL_OBJECT_STORE_CONN_ID", raising=False)
    monkeypatch.delenv("AIRFLOW_CONN_NIGHTMILL_OWNER", raising=False)
    return pipeline


def in_a_task(params: dict[str, Any], max_tries: int = 2) -> Any:
    """What a running task's context holds, as far as these tasks look."""
    from airflow.sdk.execution_time.context import set_current_context

    run = SimpleNamespace(dag_id="nightmill_cancel", triggering_user_name="ann")
    instance = SimpleNamespace(max_tries=max_tries, task=SimpleNamespace(retries=2))
    return set_current_context({"params": params, "dag_run": run, "ti": instance})  # type: ignore[typeddict-item]


def test_maintenance_sweeps_one_after_the_other_and_a_failed_one_stops_no_other_and_fails_the_run() -> None:
    dag = operations.maintenance_dag(JOBS)
    *sweeps, verdict = dag.topological_sort()
    assert [one.task_id for one in sweeps] == [str(one) for one in Sweep]
    assert {one.trigger_rule.value for one in sweeps} == {"all_done"}
    # Airflow calls a run as its last tasks ended: the only one fails with any of the sweeps.
    assert [one.task_id for one in dag.leaves] == [verdict.task_id]
    assert (verdict.trigger_rule.value, verdict.upstream_task_ids) == ("all_success", {str(one) for one in Sweep})
    assert (dag.max_active_runs, dag.catchup) == (1, False)
    assert all(one.execution_timeout is not None for one in sweeps)


def test_the_cancel_form_takes_a_batch_or_a_run() -> None:
    from airflow.sdk.exceptions import ParamValidationError

    dag = operations.cancel_dag()
    assert [one.task_id for one in dag.topological_sort()] == ["request", "wind_down"]
    dag.params.validate()
    dag.params.update({"batch": 3, "reason": "why"})
    dag.params.validate()
    with pytest.raises((ParamValidationError, ValueError)):
        dag.params.update({"batch": "three"})
        dag.params.validate()


def test_the_cancel_task_cancels_a_runs_batch_and_asks_the_provider_to_stop(deployed: Pipeline) -> None:
    set_faults(deployed.simulator, hold=True)
    batch, shard = one_shard(deployed)
    wake_until(deployed, shard, "SUBMITTED")
    chosen = {"batch": None, "dag_id": "nightmill_test", "run_id": "run-1", "reason": None}
    with in_a_task(chosen):
        assert operations.request_cancel() == batch.batch_id
    found = batch_of(deployed, batch.batch_id)
    assert (found.state, found.state_reason) == (BatchState.CANCELLED, "cancelled by ann")
    operations.wind_down(batch.batch_id)
    assert deployed.simulator.books()["batches"][0]["status"] in ("cancelling", "cancelled")
    while provider_batches(deployed)[0][0] != "COLLECTED":
        with in_a_task({"dry_run": False}):
            operations.sweep("cancelled", str(deployed.folder.parent))


def test_a_cancel_says_who_airflow_recorded_whatever_its_reason_says(deployed: Pipeline) -> None:
    batch, _ = one_shard(deployed)
    reason = "cancelled by the boss"
    with in_a_task({"batch": batch.batch_id, "dag_id": None, "run_id": None, "reason": reason}):
        operations.request_cancel()
    assert batch_of(deployed, batch.batch_id).state_reason == "cancelled by ann: cancelled by the boss"


def test_a_cancel_that_somebody_cleared_cancels_nothing(deployed: Pipeline) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    batch, _ = one_shard(deployed)
    chosen = {"batch": batch.batch_id, "dag_id": None, "run_id": None, "reason": None}
    with in_a_task(chosen, max_tries=3), pytest.raises(AirflowFailException, match="does not record by whom"):
        operations.request_cancel()
    assert not batch_of(deployed, batch.batch_id).ended


def test_a_dry_run_of_every_sweep_changes_nothing(deployed: Pipeline) -> None:
    batch, _ = one_shard(deployed)
    with in_a_task({"dry_run": True}):
        for one in Sweep:
            operations.sweep(str(one), str(deployed.folder.parent))
    assert deployed.sql("select count(*) from nightmill.maintenance_action") == [(0,)]
    assert not batch_of(deployed, batch.batch_id).ended


def test_a_sweep_task_fails_when_a_part_of_the_sweep_failed_and_the_rest_was_done(
    deployed: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_OWNER", deployed.admin_dsn)
    for number in (1, 2):
        batch = deployed.freeze(f"run-{number}")
        deployed.plan(batch)
        cancel(deployed, batch.batch_id)
    deployed.sql("update nightmill.batch set ended_at = ended_at - interval '100 days'")
    deployed.sql("create view public.kept as select source_id from nightmill.rows_1")
    with in_a_task({"dry_run": False}), pytest.raises(AirflowFailException, match="1 part of this sweep failed"):
        operations.sweep("retention", str(deployed.folder.parent))
    assert deployed.sql("select batch_id from nightmill.batch where retired_at is not null") == [(2,)]
