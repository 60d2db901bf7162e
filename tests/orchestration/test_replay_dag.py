"""The DAG nightmill_replay, and what the job's DAG does when it triggers it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.pipeline import Pipeline
from support.replays import BAD_INPUT, with_dead_letters

from nightmill.storage import batches

JOBS = Path(__file__).resolve().parents[2] / "examples" / "jobs"


@pytest.fixture
def served() -> Any:
    """The DAG as the scheduler and the form see it."""
    from airflow.serialization.serialized_objects import DagSerialization

    from nightmill.orchestration.replay_dag import replay_dag

    return DagSerialization.from_dict(DagSerialization.to_dict(replay_dag(JOBS)))


def test_the_choice_is_made_first_and_then_triggered(served: Any) -> None:
    assert served.get_task("choose").downstream_task_ids == {"trigger"}
    assert "license_audit" in served.params.get_param("job").schema["enum"]


@pytest.mark.parametrize(
    "params",
    [
        {"job": "license_audit"},
        {"job": "license_audit", "batch": 3, "classes": ["input"], "codes": ["bad"], "tenants": [], "ids": ["a"]},
        {"job": "license_audit", "ended_as": ["in_review"]},
        {"job": "license_audit", "since": "2026-01-01T00:00:00Z", "dry_run": True, "note": "why"},
    ],
)
def test_the_form_takes_what_the_command_takes(served: Any, params: dict[str, Any]) -> None:
    served.params.deep_merge(params).validate()


@pytest.mark.parametrize("params", [{}, {"job": "nobody"}, {"job": "license_audit", "batch": 0}])
def test_the_form_refuses_a_replay_of_nothing(served: Any, params: dict[str, Any]) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises((ParamValidationError, ValueError)):
        served.params.deep_merge(params).validate()


class Run:
    """A task's context, as far as ours look at it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pipeline: Pipeline, params: dict[str, Any]) -> None:
        from nightmill.orchestration import connections, replay_dag, tasks

        self.context = {
            "params": params,
            "dag_run": SimpleNamespace(
                dag_id="nightmill_test", run_id="manual__1", triggering_user_name="admin",
                data_interval_start=None, data_interval_end=None,
            ),
            "ti": SimpleNamespace(try_number=1, max_tries=5, task=SimpleNamespace(retries=5)),
        }  # fmt: skip
        for module in (replay_dag, tasks):
            monkeypatch.setattr(module, "get_current_context", lambda: self.context)
        monkeypatch.setattr(connections, "environment", lambda: pipeline.env)


FORM: dict[str, Any] = {
    "job": "notes", "batch": None, "classes": ["input"], "codes": [], "ended_as": [], "tenants": ["acme"], "ids": [],
    "since": None, "dry_run": False, "note": None,
}  # fmt: skip


def test_what_the_form_chose_becomes_a_child_batch_in_the_jobs_dag(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nightmill.orchestration import replay_dag, tasks

    parent = with_dead_letters(pipeline, BAD_INPUT)
    Run(monkeypatch, pipeline, FORM)
    chosen = replay_dag.choose(str(pipeline.folder.parent))
    assert chosen == {
        "dag_id": "nightmill_test",
        "run_id": f"replay_of_batch_{parent.batch_id}__manual__1",
        "conf": {
            "parent_batch": parent.batch_id,
            "replay": {"classes": ["input"], "tenants": ["acme"]},
            "note": f"replay of batch {parent.batch_id}",
        },
    }
    form_of_the_job = {"dry_run": False, "limit": None, "reprocess": False, "priority": "normal"}
    Run(monkeypatch, pipeline, form_of_the_job | chosen["conf"] | {"requested_by": "somebody else"})
    child = tasks.freeze_snapshot(str(pipeline.folder))
    with pipeline.env.ledger() as conn:
        assert batches.bucket_counts(conn, child) == {"dead_lettered": 2, "reused": 16, "unsettled": 2}
    [(parent_id, note, who, frozen)] = pipeline.sql(
        "select parent_batch_id, note, requested_by, frozen_at from nightmill.batch where batch_id = %s", child
    )
    assert (parent_id, note, who) == (parent.batch_id, f"replay of batch {parent.batch_id}", "admin")
    assert isinstance(frozen, datetime)
    assert frozen == parent.frozen_at


def test_a_dry_run_triggers_nothing(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    from nightmill.orchestration import replay_dag

    with_dead_letters(pipeline, BAD_INPUT)
    Run(monkeypatch, pipeline, FORM | {"dry_run": True})
    with pytest.raises(AirflowSkipException, match="nothing is triggered"):
        replay_dag.choose(str(pipeline.folder.parent))


def test_a_choice_that_matches_nothing_fails_at_once_and_says_where_to_look(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from nightmill.orchestration import replay_dag

    with_dead_letters(pipeline, BAD_INPUT)
    Run(monkeypatch, pipeline, FORM | {"tenants": ["nobody"]})
    with pytest.raises(AirflowFailException, match="Look with `python -m nightmill dead-letters"):
        replay_dag.choose(str(pipeline.folder.parent))


def test_a_task_that_somebody_cleared_sends_nothing_in_the_name_of_the_person_who_triggered_it(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from nightmill.orchestration import replay_dag

    run = Run(monkeypatch, pipeline, FORM)
    run.context["ti"] = SimpleNamespace(try_number=2, max_tries=6, task=SimpleNamespace(retries=5))
    trigger = replay_dag.TriggerOnce(task_id="trigger", trigger_dag_id="nightmill_test")
    for again in (lambda: replay_dag.choose(str(pipeline.folder.parent)), lambda: trigger.execute(run.context)):
        with pytest.raises(AirflowFailException, match=r"was cleared.*Remedy: Trigger a new run"):
            again()
