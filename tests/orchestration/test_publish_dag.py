"""The DAG nightmill_publish, and approve as Airflow's human-in-the-loop task."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.gated import APPROVE, checked, settled
from support.pipeline import JOB_YAML, OUTPUT, PROMPT, Pipeline
from support.steps import batch_of, run_unchecked

from nightmill.domain.states import BatchState

JOBS = Path(__file__).resolve().parents[2] / "examples" / "jobs"
CHAIN = ("take_up", "check_staging", "compare", "approve", "publish", "report")
ASKS = JOB_YAML.replace("publish:", "approve: {timeout_h: 1, assigned_users: [anna]}\npublish:")


def serialised(dag: Any) -> Any:
    from airflow.serialization.serialized_objects import DagSerialization

    return DagSerialization.from_dict(DagSerialization.to_dict(dag))


def publish_dag() -> Any:
    from nightmill.orchestration.publish_dag import publish_dag

    return publish_dag(JOBS)


def write_job(root: Path, name: str, job_yaml: str) -> Path:
    (root / name).mkdir()
    for file, content in (("job.yaml", job_yaml), ("prompt.md", PROMPT), ("output.py", OUTPUT)):
        (root / name / file).write_text(content)
    return root / name


def test_the_gates_of_a_job_stand_in_one_row_and_nothing_is_sent(jobs_folder: Path) -> None:
    dag = serialised(publish_dag())
    assert set(dag.task_ids) == set(CHAIN)
    for before, after in pairwise(CHAIN):
        assert after in dag.get_task(before).downstream_task_ids
    outlets = {one.name for one in dag.get_task("publish").outlets}
    assert {"nightmill_license_audit", "nightmill_requirement_lines"} <= outlets


@pytest.mark.parametrize("params", [{"batch": 3}, {"batch": 3, "confirm_narrowed": True, "note": "why"}])
def test_the_form_takes_what_the_command_takes(jobs_folder: Path, params: dict[str, Any]) -> None:
    serialised(publish_dag()).params.deep_merge(params).validate()


@pytest.mark.parametrize("params", [{}, {"batch": None}, {"batch": 0}])
def test_the_form_refuses_to_publish_nothing(jobs_folder: Path, params: dict[str, Any]) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises((ParamValidationError, ValueError)):
        serialised(publish_dag()).params.deep_merge(params).validate()


def test_only_where_a_job_asks_a_person_approve_is_airflows_human_in_the_loop_task(jobs_folder: Path) -> None:
    from nightmill.jobs import job_folders
    from nightmill.orchestration.dag_factory import build_dag

    asks_nobody, dag = publish_dag(), build_dag(job_folders.read(JOBS / "license_audit"), JOBS / "license_audit")
    for one in (asks_nobody, dag):
        assert "Approval" not in type(one.get_task("approve")).__name__
    folder = write_job(jobs_folder, "asks", ASKS)
    write_job(jobs_folder, "broken", "description: [")  # stops no other
    asking = build_dag(job_folders.read(folder), folder)
    assert type(asking.get_task("approve")).__name__ == "Approval"
    assert asking.get_task("approve").trigger_rule == "none_failed"
    assert [one.task_id for one in asking.topological_sort()][-3:] == ["approve", "publish", "report"]
    assert type(publish_dag().get_task("approve")).__name__ == "ApprovalOfPreview"
    for one in (asking, publish_dag()):
        served = serialised(one).get_task("approve")
        assert "reason" in served.params


class Desk:
    """A task's context, and Airflow's side of a question, as far as ours look at it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pipeline: Pipeline, params: dict[str, Any]) -> None:
        from airflow.providers.standard.operators import hitl

        from nightmill.orchestration import connections, publish_dag, tasks

        self.asked: list[dict[str, Any]] = []
        self.context: dict[str, Any] = {
            "params": params,
            "dag_run": SimpleNamespace(dag_id="nightmill_publish", run_id="manual__1", triggering_user_name="anna"),
            "ti": SimpleNamespace(max_tries=8),
            "task_instance": SimpleNamespace(id="1"),
        }
        for module in (publish_dag, tasks):
            monkeypatch.setattr(module, "get_current_context", lambda: self.context)
        monkeypatch.setattr(connections, "environment", lambda: pipeline.env)
        monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **question: self.asked.append(question))


def answer(chosen: str, user: str = "anna", **given: Any) -> dict[str, Any]:
    by = {"id": user, "name": user}
    return {
        "chosen_options": [chosen], "params_input": given, "responded_by_user": by, "timedout": False,
        "responded_at": datetime(2026, 12, 1, tzinfo=UTC),
    }  # fmt: skip


def test_the_task_asks_with_numbers_and_a_link_and_records_the_answer(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput

    from nightmill.orchestration.approval import Approval, form

    pipeline.edit(
        "job.yaml", "publish:", "approve: {timeout_h: 1, assigned_users: [anna], on_timeout: reject}\npublish:"
    )
    batch = settled(pipeline)
    checked(pipeline, batch)
    desk = Desk(monkeypatch, pipeline, {})
    task = Approval(task_id="approve", folder=str(pipeline.folder), batch_id=batch.batch_id, params=form())
    with pytest.raises(TaskAwaitingInput) as waits:
        task.execute(desk.context)  # type: ignore[arg-type]
    assert 3590 < waits.value.timeout.total_seconds() <= 3600  # type: ignore[union-attr]
    [asked] = desk.asked
    assert asked["subject"] == f"Show batch {batch.batch_id} of notes in results.notes?"
    assert "/nightmill/batch?dag_id=nightmill_test&run_id=run-1" in asked["body"]
    assert (asked["options"], asked["defaults"]) == (["Approve", "Reject"], None)
    assert asked["assigned_users"] == [{"id": "anna", "name": "anna"}]
    assert batch_of(pipeline, batch.batch_id).state is BatchState.BLOCKED

    with pytest.raises(AirflowFailException, match="bob is not one of approve"):
        task.execute_complete(desk.context, answer("Approve", "bob"))  # type: ignore[arg-type]
    assert batch_of(pipeline, batch.batch_id).state is BatchState.BLOCKED
    with pytest.raises(AirflowFailException, match="rejected by anna: the dates are wrong"):
        task.execute_complete(desk.context, answer("Reject", reason="the dates are wrong"))  # type: ignore[arg-type]
    assert batch_of(pipeline, batch.batch_id).state is BatchState.REJECTED


def test_a_time_out_without_a_default_fails_at_once_and_says_that_clearing_asks_again(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import timedelta

    from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput

    from nightmill.orchestration.approval import Approval, form

    pipeline.edit("job.yaml", "publish:", APPROVE)
    batch = settled(pipeline)
    checked(pipeline, batch)
    desk = Desk(monkeypatch, pipeline, {})
    task = Approval(task_id="approve", folder=str(pipeline.folder), batch_id=batch.batch_id, params=form())
    with pytest.raises(TaskAwaitingInput):
        task.execute(desk.context)  # type: ignore[arg-type]
    pipeline.clock_offset += timedelta(hours=24)
    event = {"error": "The response timeout has passed.", "error_type": "timeout"}
    with pytest.raises(AirflowFailException, match=r"nobody answered until .*Remedy: Clear approve"):
        task.execute_complete(desk.context, event)  # type: ignore[arg-type]
    desk.context["ti"].max_tries = 9
    with pytest.raises(TaskAwaitingInput):
        task.execute(desk.context)  # type: ignore[arg-type]
    task.execute_complete(desk.context, answer("Approve"))  # type: ignore[arg-type]
    assert batch_of(pipeline, batch.batch_id).state is BatchState.VALIDATING


def test_a_preview_is_taken_up_asked_about_and_shown_with_the_event_of_its_view(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput

    from nightmill.orchestration import publish_dag
    from nightmill.orchestration.approval import ApprovalOfPreview, form

    pipeline.edit("job.yaml", "publish:", APPROVE)
    staged = run_unchecked(pipeline, by_hand=True, params={"limit": 3}).batch
    root = str(pipeline.folder.parent)
    form_of_it = {"batch": staged.batch_id, "confirm_narrowed": False, "note": None}
    desk = Desk(monkeypatch, pipeline, form_of_it)
    with pytest.raises(AirflowFailException, match="confirm_narrowed in the form"):
        publish_dag.take_up()
    form_of_it["confirm_narrowed"] = True
    assert publish_dag.take_up() == staged.batch_id
    checked(pipeline, staged)
    publish_dag.compare(root, staged.batch_id)
    task = ApprovalOfPreview(task_id="approve", folder=root, batch_id=staged.batch_id, params=form())
    with pytest.raises(TaskAwaitingInput):
        task.execute(desk.context)  # type: ignore[arg-type]
    assert "It has a limit of 3 rows" in desk.asked[0]["body"]
    task.execute_complete(desk.context, answer("Approve"))  # type: ignore[arg-type]

    events: list[Any] = []
    recorder = SimpleNamespace(add=lambda asset, extra: events.append((asset.name, extra["batch_id"])))
    from airflow.sdk import AssetAlias

    desk.context["outlet_events"] = {AssetAlias("nightmill_notes"): recorder}
    publish_dag.publish(root, staged.batch_id)
    assert events == [("nightmill.results.notes", staged.batch_id)]
    assert pipeline.sql("select count(*) from results.notes") == [(3,)]
    (pipeline.folder / "job.yaml").unlink()
    with pytest.raises(AirflowFailException, match="The job folder notes is gone"):
        publish_dag.compare(root, staged.batch_id)


def test_a_person_who_marks_the_run_as_failed_makes_it_a_preview_again(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nightmill.orchestration import listener, publish_dag

    staged = run_unchecked(pipeline, publish="no").batch
    desk = Desk(monkeypatch, pipeline, {"batch": staged.batch_id, "confirm_narrowed": False, "note": None})
    publish_dag.take_up()
    for message, state in (("task_failure", BatchState.VALIDATING), (listener.BY_A_PERSON, BatchState.STAGED)):
        listener.on_dag_run_failed(desk.context["dag_run"], message)
        assert batch_of(pipeline, staged.batch_id).state is state
