"""Who ends a run decides: a person who marks it as failed cancels its batch, a fault does not. Shown with Airflow's
own code for both, and with the plugin as Airflow loads it."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.pipeline import Pipeline
from support.steps import batch_of

from nightmill.domain.states import BatchState
from nightmill.orchestration import listener

REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_person_who_marks_a_run_as_failed_cancels_its_batch_and_a_fault_does_not(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    marked, failed, timed_out = (pipeline.freeze(f"run-{number}").batch_id for number in (1, 2, 3))
    foreign = pipeline.freeze("run-4", dag_id="somebody_elses").batch_id
    dags = tmp_path / "dags"
    dags.mkdir()
    airflow = {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
        "AIRFLOW_CONN_NIGHTMILL_DB": pipeline.writer_dsn,
        "NIGHTMILL_OBJECT_STORE": f"file://{pipeline.store}",
        "PYTHONPATH": f"{REPOSITORY / 'include'}:{REPOSITORY / 'tests'}",
    }
    done = subprocess.run(
        [sys.executable, "-m", "support.marked_runs", str(dags)],
        env=os.environ | airflow,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    states = [batch_of(pipeline, one).state for one in (marked, failed, timed_out, foreign)]
    assert states == [BatchState.CANCELLED, BatchState.PLANNING, BatchState.PLANNING, BatchState.PLANNING]
    batch = batch_of(pipeline, marked)
    assert (batch.generation, batch.state_reason) == (2, "its run was marked as failed")
    said = done.stdout + done.stderr
    assert f"Run run-1 of nightmill_test was marked as failed: batch {marked} is cancelled" in said
    assert "has no batch" in said


def test_the_schedulers_words_are_not_a_persons() -> None:
    from airflow.jobs import scheduler_job_runner
    from airflow.models import dagrun

    for module in (dagrun, scheduler_job_runner):
        source = inspect.getsource(module)
        assert "notify_dagrun_state_changed(msg=" in source
        assert "manually set" not in source


def test_a_cancel_that_cannot_be_written_is_an_error_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", "postgres://x:y@127.0.0.1:1/none")
    run = SimpleNamespace(dag_id="nightmill_test", run_id="run-1")
    listener.on_dag_run_failed(run, listener.BY_A_PERSON)
    assert "its batch was not cancelled" in caplog.text
    assert "Then trigger nightmill_cancel." in caplog.text


@pytest.mark.parametrize("message", ["task_failure", "all_tasks_deadlocked", "timed_out", ""])
def test_nothing_is_asked_of_the_ledger_where_nobody_clicked(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", "")
    listener.on_dag_run_failed(SimpleNamespace(dag_id="nightmill_test", run_id="run-1"), message)
