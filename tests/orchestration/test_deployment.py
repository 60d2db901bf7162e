"""Two Airflows on one ledger: DAGs and runs have the same names in both, and only one of them may touch it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Variable
from airflow.sdk.exceptions import AirflowFailException
from support.pipeline import Pipeline
from support.steps import batch_of, counts, run_unchecked

from dev.stack.postgres import Server
from nightmill.console import access
from nightmill.domain.errors import ConfigError
from nightmill.domain.maintenance import Sweep
from nightmill.domain.states import BatchState
from nightmill.orchestration import connections, deployment, listener, operations
from nightmill.services.connections import environment_of
from nightmill.stages import freeze
from nightmill.storage import deployments

SETTING = "AIRFLOW_VAR_NIGHTMILL_DEPLOYMENT"
Airflow = Callable[[str | None], None]


@pytest.fixture
def airflow(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Airflow:
    """Makes this process one of an Airflow of the given id."""
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", pipeline.writer_dsn)
    monkeypatch.setenv("AIRFLOW_CONN_SOURCE", pipeline.admin_dsn)
    account = {"conn_type": "generic", "host": pipeline.simulator.base_url, "password": "key"}
    monkeypatch.setenv("AIRFLOW_CONN_PROVIDER", json.dumps(account))
    monkeypatch.setenv("NIGHTMILL_OBJECT_STORE", f"file://{pipeline.store}")
    monkeypatch.delenv("NIGHTMILL_OBJECT_STORE_CONN_ID", raising=False)

    def be(deployment_id: str | None) -> None:
        if deployment_id is None:
            monkeypatch.delenv(SETTING, raising=False)
        else:
            monkeypatch.setenv(SETTING, deployment_id)

    return be


def in_a_task(params: dict[str, Any]) -> Any:
    from airflow.sdk.execution_time.context import set_current_context

    return set_current_context({"params": params, "dag_run": SimpleNamespace(triggering_user_name="ann")})  # type: ignore[typeddict-item]


def frozen(pipeline: Pipeline, *, first_try: bool = True) -> int:
    """The batch of this Airflow's run `run-1`."""
    request = pipeline.request(first_try=first_try)
    return freeze.run(connections.environment(), pipeline.live, request).batch_id


def test_a_second_airflow_does_not_take_up_the_batch_of_a_run_of_the_same_name(
    pipeline: Pipeline, airflow: Airflow
) -> None:
    airflow("airflow-one")
    batch_id = frozen(pipeline)
    airflow("airflow-two")
    with pytest.raises(ConfigError) as refused:
        frozen(pipeline, first_try=False)
    said = str(refused.value)
    assert "belongs to another Airflow" in said and "airflow-one, and this one is airflow-two" in said
    assert "a ledger database of its own" in said
    airflow("airflow-one")
    assert frozen(pipeline, first_try=False) == batch_id  # another worker of the first one, or that one restored


def test_the_remedy_of_the_refusal_lets_an_airflow_take_the_place_of_one_that_is_gone(
    pipeline: Pipeline, airflow: Airflow
) -> None:
    airflow("airflow-one")
    batch_id = frozen(pipeline)
    airflow("airflow-new")
    with pytest.raises(ConfigError) as refused:
        frozen(pipeline, first_try=False)
    command = refused.value.remedy.split("`")[1]
    assert command == "airflow variables set nightmill_deployment airflow-one"
    airflow(command.split()[-1])
    assert frozen(pipeline, first_try=False) == batch_id


def test_no_sweep_of_a_second_airflow_touches_the_first_ones_batches(
    pipeline: Pipeline, airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_OWNER", pipeline.admin_dsn)
    airflow("airflow-one")
    batch_id = frozen(pipeline)
    pipeline.sql("update nightmill.transition set made_at = now() - interval '9 days'")
    pipeline.sql("update nightmill.batch set created_at = now() - interval '9 days'")
    airflow("airflow-two")
    for sweep in Sweep:
        with in_a_task({"dry_run": False}), pytest.raises(AirflowFailException, match="belongs to another Airflow"):
            operations.sweep(str(sweep), str(pipeline.folder.parent))
    assert batch_of(pipeline, batch_id).state is BatchState.PLANNING
    airflow("airflow-one")
    with in_a_task({"dry_run": False}):
        operations.sweep("abandoned", str(pipeline.folder.parent))
    assert batch_of(pipeline, batch_id).state is BatchState.CANCELLED


def test_a_run_that_is_marked_as_failed_in_a_second_airflow_cancels_nothing_of_the_first(
    pipeline: Pipeline, airflow: Airflow, caplog: pytest.LogCaptureFixture
) -> None:
    airflow("airflow-one")
    batch_id = frozen(pipeline)
    marked = SimpleNamespace(dag_id="nightmill_test", run_id="run-1")
    for other in ("airflow-two", None):  # also one in which no task of nightmill ever ran
        airflow(other)
        listener.on_dag_run_failed(marked, listener.BY_A_PERSON)
        assert batch_of(pipeline, batch_id).state is BatchState.PLANNING
    assert "was marked as failed: This ledger belongs to another Airflow" in caplog.text
    assert "this one is without an id" in caplog.text
    airflow("airflow-one")
    listener.on_dag_run_failed(marked, listener.BY_A_PERSON)
    assert batch_of(pipeline, batch_id).state is BatchState.CANCELLED


def test_the_pages_of_a_second_airflow_show_nothing_of_the_first_ones_batches(
    pipeline: Pipeline, airflow: Airflow, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres_server.create_login("nightmill_test_console")
    pipeline.sql("grant nightmill_console to nightmill_test_console")
    dsn = postgres_server.dsn(pipeline.admin_dsn.rsplit("/", 1)[1], "nightmill_test_console")
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_CONSOLE", dsn)
    airflow("airflow-one")
    frozen(pipeline)
    with access.open_ledger() as conn:
        assert conn.execute("select count(*) from nightmill.batch").fetchone() == (1,)
    airflow("airflow-two")
    with pytest.raises(ConfigError, match="belongs to another Airflow"), access.open_ledger():
        raise AssertionError("it was opened")


def test_a_command_is_refused_where_it_is_said_to_belong_to_another_airflow(
    pipeline: Pipeline, airflow: Airflow
) -> None:
    airflow("airflow-one")
    batch_id = frozen(pipeline)
    variables = {"AIRFLOW_CONN_NIGHTMILL_DB": pipeline.writer_dsn, "NIGHTMILL_OBJECT_STORE": f"file://{pipeline.store}"}
    for known in ({}, {SETTING: "airflow-one"}):
        with environment_of(variables | known).ledger() as conn:
            assert conn.execute("select max(batch_id) from nightmill.batch").fetchone() == (batch_id,)
    with pytest.raises(ConfigError, match="belongs to another Airflow"):
        environment_of(variables | {SETTING: "airflow-two"}).ledger()


def test_neither_the_writer_nor_a_second_pin_changes_whom_the_ledger_belongs_to(pipeline: Pipeline) -> None:
    with pipeline.env.ledger() as conn:
        deployments.pin(conn, "airflow-one")
        with pytest.raises(ConfigError):
            deployments.pin(conn, "airflow-two")
        assert [one.deployment_id for one in [deployments.pinned(conn)] if one] == ["airflow-one"]
    for statement in ("update nightmill.deployment set deployment_id = 'x'", "delete from nightmill.deployment"):
        with pytest.raises(Exception, match="permission denied"), pipeline.env.ledger() as conn:
            conn.execute(statement)


def test_tasks_that_start_together_in_a_new_airflow_make_one_id(
    pipeline: Pipeline, airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dictionary stands in for Airflow's variables: writing one takes an API server. The real ones: end_to_end."""
    airflow(None)
    variables: dict[str, str] = {}
    made = threading.Barrier(4)
    first_look = threading.local()

    def get(key: str, default: object = None) -> object:
        if not hasattr(first_look, "taken"):
            first_look.taken = True
            found = variables.get(key, default)
            made.wait(10)  # all of them find none
            return found
        return variables.get(key, default)

    monkeypatch.setattr(Variable, "get", get)
    monkeypatch.setattr(Variable, "set", lambda key, value, description: variables.__setitem__(key, value))
    monkeypatch.setattr(deployment, "in_a_task", lambda: True)
    faults: list[Exception] = []

    def task() -> None:
        try:
            connections.environment().ledger().close()
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=task) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert faults == []
    assert pipeline.sql("select deployment_id from nightmill.deployment") == [(variables["nightmill_deployment"],)]


def test_a_ledger_from_before_belongs_to_the_first_airflow_whose_task_uses_it(
    pipeline: Pipeline, airflow: Airflow
) -> None:
    report = run_unchecked(pipeline)
    assert pipeline.sql("select count(*) from nightmill.deployment") == [(0,)]
    airflow("airflow-one")
    with connections.environment().ledger():
        pass
    assert pipeline.sql("select deployment_id from nightmill.deployment") == [("airflow-one",)]
    assert counts(pipeline, report.batch) == {"accepted": 20}
