"""The DAG nightmill_rollback: its form, and its task in an Airflow context."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import run_unchecked

JOBS = Path(__file__).resolve().parents[2] / "examples" / "jobs"
FORM: dict[str, Any] = {
    "view": "notes", "to": None, "interval": None, "revoke": False, "reason": None, "dry_run": False,
}  # fmt: skip


@pytest.fixture
def served() -> Any:
    """The DAG as the scheduler and the form see it."""
    from airflow.serialization.serialized_objects import DagSerialization

    from nightmill.orchestration.rollback_dag import rollback_dag

    return DagSerialization.from_dict(DagSerialization.to_dict(rollback_dag(JOBS)))


@pytest.mark.parametrize(
    "params",
    [
        {"view": "license_terms"},
        {"view": "license_terms", "to": 3, "revoke": True, "reason": "why"},
        {"view": "license_terms", "interval": "2026-01-31", "dry_run": True},
    ],
)
def test_the_form_takes_what_the_command_takes(served: Any, params: dict[str, Any]) -> None:
    params = {**params, "view": served.params.get_param("view").schema["enum"][0]}
    served.params.deep_merge(params).validate()


@pytest.mark.parametrize("params", [{}, {"view": "nobody"}])
def test_the_form_refuses_a_view_that_no_job_has(served: Any, params: dict[str, Any]) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises((ParamValidationError, ValueError)):
        served.params.deep_merge(params).validate()


class Run:
    """A task's context, as far as ours look at it, and the events that it emits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pipeline: Pipeline, **params: Any) -> None:
        from nightmill.orchestration import connections, rollback_dag

        self.events: list[tuple[str, str, dict[str, Any]]] = []
        self.context = {
            "params": FORM | params,
            "dag_run": SimpleNamespace(dag_id="nightmill_rollback", run_id="manual__1", triggering_user_name="ann"),
            "ti": SimpleNamespace(max_tries=8, task=SimpleNamespace(retries=8)),
            "outlet_events": self,
        }
        monkeypatch.setattr(rollback_dag, "get_current_context", lambda: self.context)
        monkeypatch.setattr(connections, "environment", lambda: pipeline.env)

    def __getitem__(self, alias: Any) -> Any:
        return SimpleNamespace(add=lambda asset, extra: self.events.append((alias.name, asset.uri, extra)))

    def roll_back(self) -> None:
        from nightmill.orchestration.rollback_dag import roll_back

        roll_back()


@pytest.fixture
def two(pipeline: Pipeline) -> Pipeline:
    """Two batches were published."""
    run_unchecked(pipeline)
    run_unchecked(pipeline, "run-2")
    return pipeline


SHOWN = "select distinct batch_id from results.notes"


def test_the_task_rolls_back_once_and_tells_consumers_at_each_try(
    two: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(monkeypatch, two, reason="bad", revoke=True)
    for _ in range(2):  # killed after its commit, and tried again
        run.roll_back()
    assert two.sql(SHOWN) == [(1,)]
    assert two.sql("select published_by, note from nightmill.publication where kind = 'rollback'") == [("ann", "bad")]
    event = {"view": "notes", "batch_id": 1, "publish_seq": 3, "kind": "rollback", "intervals": []}
    assert run.events == [("nightmill_notes", "nightmill://results/notes", event)] * 2


def test_a_dry_run_changes_nothing_and_tells_nobody(
    two: Pipeline, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    run = Run(monkeypatch, two, dry_run=True)
    with caplog.at_level("INFO"), pytest.raises(AirflowSkipException):
        run.roll_back()
    assert two.sql(SHOWN) == [(2,)]
    assert "taken back: batch 2" in caplog.text
    assert run.events == []


def test_what_cannot_be_rolled_back_and_a_cleared_task_fail_at_once(
    two: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="has no publication 9"):
        Run(monkeypatch, two, to=9).roll_back()
    run = Run(monkeypatch, two)
    run.context["ti"] = SimpleNamespace(max_tries=9, task=SimpleNamespace(retries=8))
    with pytest.raises(AirflowFailException, match="was cleared"):
        run.roll_back()
    assert two.sql(SHOWN) == [(2,)]
